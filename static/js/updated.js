// Says how long ago the figures of a page were read, by this computer's own clock: the
// server's may differ. Where the server cannot be reached, it says so and what was not saved, and
// tries again when asked to.
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

  const root = document.documentElement;
  let press = null; // does again what did not reach the server
  const gone = (title, text, retry) => {
    root.dataset.gone = 'yes';
    press = retry;
    const note = document.querySelector('[data-gone]:not(html)');
    if (!note) return;
    note.querySelector('[data-gone-title]').textContent = title;
    note.querySelector('[data-gone-text]').textContent = text;
    note.hidden = false;
  };
  const back = () => {
    if (!root.dataset.gone) return;
    delete root.dataset.gone;
    const note = document.querySelector('[data-gone]:not(html)');
    if (note) note.hidden = true;
  };
  const reached = () => fetch(location.href, { method: 'HEAD' }).then(() => true, () => false);
  const look = async () => {
    if (await reached()) back(); else if (!root.dataset.gone) gone('Not connected.', 'This page does not change until the server answers again.', look);
  };
  document.addEventListener('htmx:error', event => {
    const { ctx, error } = event.detail;
    if (!ctx || !(error instanceof TypeError) || ctx.response || ctx.sourceElement.matches('[data-quiet]')) return; // no failure to reach the server
    const element = ctx.sourceElement, submitter = ctx.sourceEvent?.submitter;
    const isSaved = ctx.request.method !== 'GET';
    const [title, text] = isSaved ? ['Not connected, not saved.', 'Your input is still here.'] : ['Not connected.', 'You are still on this page.'];
    gone(title, text, () => {
      if (element.matches('form')) element.requestSubmit(submitter?.isConnected ? submitter : null); else element.click();
    });
  });
  // A part that refreshes on its own stays as it is if that fails.
  document.addEventListener('htmx:before:response', event => {
    const { ctx } = event.detail;
    if (ctx.response.status >= 500 && ctx.sourceElement.matches('[data-live][data-quiet]')) event.preventDefault();
  });
  document.addEventListener('htmx:after:request', back);
  document.addEventListener('palimpsest:streaming', back);
  document.addEventListener('palimpsest:unheard', look);
  addEventListener('offline', look);
  document.addEventListener('click', event => { if (event.target.closest('[data-gone-again]') && press) press(); });
  tick();
})();
