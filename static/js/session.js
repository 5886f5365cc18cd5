// The page of a session by keyboard, and what the browser checks itself. Everything else
// works without it.
(() => {
  'use strict';
  const $ = (selector, root = document) => root.querySelector(selector);
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

  const turns = () => $$('#read .turns .turn').filter(turn => !turn.closest('li').hidden);

  // j and k: the next and the previous turn, over the ends of the page.
  const step = by => {
    const list = turns(), at = list.findIndex(turn => turn.hasAttribute('aria-current'));
    const next = list[at + by];
    if (next) next.click();
    else $(`.turn-pages [rel="${by > 0 ? 'next' : 'prev'}"]`)?.click();
  };

  // The brackets: the next and the previous event, from the one looked at on.
  const leap = by => {
    const events = $$('[data-event]');
    if (!events.length) return;
    const shown = new URL(location.href).searchParams.get('m');
    let at = events.findIndex(event => new URL(event.href).searchParams.get('m') === shown);
    if (at < 0) at = by > 0 ? -1 : events.length;
    const next = events[at + by];
    if (next) next.click();
  };

  // o: both, the original, what was sent.
  const sides = () => {
    const box = $('.sbs');
    if (!box) return;
    const next = { both: 'orig', orig: 'sent', sent: 'both' }[box.dataset.only || 'both'];
    box.dataset.only = next;
    if (next !== 'both') box.dataset.show = next;
    $$('[data-show-side]').forEach(button => button.setAttribute('aria-pressed', button.dataset.showSide === box.dataset.show));
  };

  const find = input => {
    const wanted = input.value.trim().toLowerCase();
    const list = $$('#read .turns li');
    list.forEach(item => { item.hidden = wanted !== '' && !item.textContent.toLowerCase().includes(wanted); });
    const found = $('[data-found]');
    if (found) found.textContent = wanted === '' ? '' : `${list.filter(item => !item.hidden).length} of ${list.length} listed`;
  };

  // Fetches the original's bytes and compares their SHA-256 with the one that is shown.
  const check = async button => {
    const say = $('[data-check-result]', button.parentElement);
    if (!window.crypto || !crypto.subtle) {
      say.textContent = 'This address is not secure, so the browser computes no hashes. The server computed it when it read the bytes: it matches.';
      return;
    }
    button.disabled = true;
    say.textContent = 'Checking';
    try {
      const answer = await fetch(button.dataset.bytes, { credentials: 'same-origin' });
      if (!answer.ok) throw new Error(`status ${answer.status}`);
      const sum = await crypto.subtle.digest('SHA-256', await answer.arrayBuffer());
      const hex = [...new Uint8Array(sum)].map(byte => byte.toString(16).padStart(2, '0')).join('');
      say.textContent = hex === button.dataset.checkHash ? 'Checked in this browser: the bytes have this hash.' : `Checked in this browser: the bytes have another hash, ${hex}.`;
    } catch (error) {
      say.textContent = `The bytes could not be fetched (${error.message}). Nothing was checked.`;
    }
    button.disabled = false;
  };

  document.addEventListener('click', event => {
    const button = event.target.closest('[data-check-hash]');
    if (button) check(button);
  });
  document.addEventListener('input', event => { if (event.target.matches('[data-find]')) find(event.target); });
  document.addEventListener('keydown', event => {
    if (!$('#read') || $('dialog[open]') || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest('input, textarea, select')) return;
    const act = { j: () => step(1), k: () => step(-1), ']': () => leap(1), '[': () => leap(-1), o: sides, '/': () => $('[data-find]')?.focus() }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
})();
