// Lists that are walked with the keyboard: j and k go from row to row, o opens. Enter
// follows the link that has the focus, as everywhere.
(() => {
  'use strict';
  const busy = event => event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey ||
    event.target.closest('input, select, textarea, [contenteditable]') || document.querySelector('dialog[open]');

  document.addEventListener('keydown', event => {
    const step = { j: 1, k: -1 }[event.key];
    if ((!step && event.key !== 'o') || busy(event)) return;
    const rows = [...document.querySelectorAll('[data-rows] [data-row]')].filter(row => row.offsetParent);
    if (rows.length === 0) return;
    const at = rows.indexOf(document.activeElement);
    if (event.key === 'o') {
      if (at >= 0) rows[at].click();
      return;
    }
    event.preventDefault();
    const next = at < 0 ? 0 : Math.max(0, Math.min(rows.length - 1, at + step));
    rows[next].focus();
  });
})();
