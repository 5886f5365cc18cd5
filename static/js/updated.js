// Says how long ago the figures of a page were read, by this computer's own clock: the
// server's may differ.
(() => {
  'use strict';
  const words = seconds => seconds < 60 ? `${seconds} s` : seconds < 3600 ? `${Math.floor(seconds / 60)} min` : `${Math.floor(seconds / 3600)} h`;
  const tick = () => document.querySelectorAll('[data-updated]').forEach(element => {
    const read = Number(element.dataset.updated) || Date.now();
    element.dataset.updated = read;
    element.textContent = `updated ${words(Math.floor((Date.now() - read) / 1000))} ago`;
  });
  document.addEventListener('htmx:after:swap', tick);
  setInterval(tick, 1000);
  tick();
})();
