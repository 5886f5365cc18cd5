// Asks for the preview of a pipeline again whenever something of it is changed, and has
// its figures downloaded. What stands there is grayed until the answer is there; an
// older answer never replaces a newer one. Where none comes, the card says so and can be
// asked again.
(() => {
  'use strict';
  const pause = 120; // milliseconds without a change
  const patience = 60000; // milliseconds until an answer is given up
  let asked = 0;

  const ask = async card => {
    const number = ++asked;
    card.classList.add('stale');
    const form = card.closest('form');
    const text = await fetch(card.dataset.preview, { method: 'POST', body: new URLSearchParams(new FormData(form)), signal: AbortSignal.timeout(patience) })
      .then(answer => (answer.ok && !answer.redirected || answer.status === 422 ? answer.text() : null)).catch(() => null);
    if (number !== asked || !card.isConnected) return;
    const body = card.querySelector('[data-preview-body]');
    if (text !== null) {
      body.innerHTML = text;
    } else {
      body.replaceChildren(card.querySelector('[data-preview-unreached]').content.cloneNode(true));
    }
    card.classList.remove('stale');
    const says = form.querySelector('[data-says]'); // beside the button that saves
    if (says) says.textContent = body.querySelector('[data-consequence]')?.textContent ?? '';
  };

  let waiting = 0;
  const changed = event => {
    const card = event.target.closest?.('form')?.querySelector('[data-preview]');
    if (!card || card.dataset.asked === undefined) return;
    card.classList.add('stale');
    clearTimeout(waiting);
    waiting = setTimeout(() => ask(card), pause);
  };
  document.addEventListener('input', changed);

  document.addEventListener('click', event => {
    const card = event.target.closest?.('[data-preview-again]')?.closest('[data-preview]');
    if (!card) return;
    event.preventDefault();
    ask(card);
  });

  // A file is for the browser to keep: htmx would put it in the place of the page.
  document.addEventListener('submit', event => { if (event.submitter?.dataset.download !== undefined) event.stopPropagation(); }, true);

  const begin = () => document.querySelectorAll('[data-preview]:not([data-asked])').forEach(card => {
    if (card.closest('[hidden]')) return; // asked for once it is shown
    card.dataset.asked = '';
    ask(card);
  });
  document.addEventListener('htmx:after:swap', begin);
  document.addEventListener('palimpsest:shown', begin);
  begin();
})();
