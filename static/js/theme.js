// Runs before the page is drawn. The server has rendered the theme that the
// reader chose; here it only becomes quick to change.
(() => {
  'use strict';
  const root = document.documentElement;
  root.classList.add('js');

  document.addEventListener('submit', event => {
    if (!event.target.matches('[data-theme-switch]') || !event.submitter) return;
    event.preventDefault();
    const theme = event.submitter.value;
    const secure = location.protocol === 'https:' ? '; secure' : '';
    document.cookie = `theme=${theme}; path=/; max-age=31536000; samesite=lax${secure}`;
    root.dataset.theme = theme;
    const other = event.target.querySelector(theme === 'dark' ? '.to-light' : '.to-dark');
    if (other) other.focus();
    document.dispatchEvent(new CustomEvent('palimpsest:theme'));
  });
})();
