// Asks for the preview of a pipeline again whenever something of it is changed, and has
// its figures downloaded. What stands there is grayed until the answer is there; an
// older answer never replaces a newer one. Where none comes, the card says so and can be
// asked again. The rows that need the text of sessions take longer, and follow by themselves.
(() => {
  'use strict';
  const pause = 120; // milliseconds without a change
  const patience = 60000; // milliseconds until an answer is given up
  let newest = new AbortController(); // ends the older questions

  // Posts the form; the answer is null if there is none, or a newer question.
  const post = (address, form, signal) => fetch(address, { method: 'POST', body: new URLSearchParams(new FormData(form)), signal: AbortSignal.any([signal, AbortSignal.timeout(patience)]) })
    .then(answer => (answer.ok && !answer.redirected || answer.status === 422 ? answer.text() : null)).catch(() => null);

  const addDetails = async (card, form, says, signal) => {
    const rows = card.querySelector('[data-details]');
    if (!rows) return;
    const text = await post(rows.dataset.details, form, signal);
    if (signal.aborted || !rows.isConnected) return;
    if (text === null) {
      rows.querySelectorAll('.sk').forEach(room => room.replaceWith('–'));
      rows.querySelector('.basis td').textContent = 'The last two rows did not load.';
      return;
    }
    rows.outerHTML = text;
    const remembers = card.querySelector('[data-remembers]')?.dataset.remembers;
    if (says && remembers) says.textContent += ` ${remembers}`;
  };

  const ask = async card => {
    newest.abort();
    newest = new AbortController();
    const { signal } = newest;
    card.classList.add('stale');
    const form = card.closest('form');
    const text = await post(card.dataset.preview, form, signal);
    if (signal.aborted || !card.isConnected) return;
    const body = card.querySelector('[data-preview-body]');
    if (text !== null) {
      body.innerHTML = text;
    } else {
      body.replaceChildren(card.querySelector('[data-preview-unreached]').content.cloneNode(true));
    }
    card.classList.remove('stale');
    const says = form.querySelector('[data-says]'); // beside the button that saves
    if (says) says.textContent = body.querySelector('[data-consequence]')?.textContent ?? '';
    addDetails(card, form, says, signal);
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
    card.dataset.asked = '';
    ask(card);
  });
  document.addEventListener('htmx:after:swap', begin);
  begin();
})();
