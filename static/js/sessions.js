// The keyboard in lists whose rows are links: j and k go from one to the next, o opens
// it, / goes to the search. Everything works without it.
(() => {
  'use strict';
  document.addEventListener('keydown', event => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.target.closest('input, textarea, select, [contenteditable], dialog')) return;
    const rows = [...document.querySelectorAll('[data-row]')].filter(row => row.getClientRects().length > 0);
    const search = document.querySelector('[data-find]');
    if (event.key === '/' && search) {
      event.preventDefault();
      search.focus();
      return;
    }
    const at = rows.indexOf(document.activeElement);
    if (event.key === 'o' && at >= 0) rows[at].click();
    const step = { j: 1, k: -1 }[event.key];
    if (!step || rows.length === 0) return;
    event.preventDefault();
    const next = at < 0 ? 0 : Math.min(Math.max(at + step, 0), rows.length - 1);
    rows[next].focus();
    rows[next].scrollIntoView({ block: 'nearest' });
  });
})();
