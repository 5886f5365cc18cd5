// The palette: jumps to whatever is typed. A combobox whose list the server writes;
// without scripts its button leads to a page that does the same.
(() => {
  'use strict';
  const dialog = () => document.getElementById('palette');
  const field = () => document.getElementById('palette-q');
  const list = () => document.getElementById('palette-list');
  const options = () => [...list().querySelectorAll('[role="option"]')];
  let asked, wait = 0, moved = false;

  const choose = option => {
    options().forEach(other => other.setAttribute('aria-selected', other === option));
    if (!option) { field().removeAttribute('aria-activedescendant'); return; }
    field().setAttribute('aria-activedescendant', option.id);
    option.scrollIntoView({ block: 'nearest' });
  };
  const chosen = () => options().find(option => option.getAttribute('aria-selected') === 'true');

  const show = html => {
    const box = document.createElement('template');
    box.innerHTML = html;
    const words = box.content.querySelector('[data-words]');
    if (words) words.remove();
    const before = moved && chosen()?.getAttribute('href'); // an answer that arrives late keeps the person's choice
    list().replaceChildren(box.content);
    if (window.htmx) window.htmx.process(list());
    field().setAttribute('aria-expanded', options().length > 0);
    dialog().querySelector('[data-palette-words]').textContent = words ? words.textContent : '';
    choose(options().find(option => option.getAttribute('href') === before) || options()[0]);
  };

  const look = async () => {
    if (asked) asked.abort();
    const mine = asked = new AbortController();
    const query = new URLSearchParams({ q: field().value.trim() });
    try {
      const answer = await fetch(`${dialog().dataset.url}?${query}`, { headers: { 'HX-Request-Type': 'partial' }, signal: mine.signal });
      const html = await answer.text();
      if (mine !== asked || !dialog().open) return;
      if (!answer.ok || answer.redirected) throw new Error(answer.status);
      show(html);
    } catch (error) {
      if (mine !== asked || !dialog().open) return; // it was abandoned, or no one waits for it
      list().replaceChildren(Object.assign(document.createElement('div'), { className: 'jump-note', textContent: 'The list did not load. Press Enter to search on a page.' }));
      field().setAttribute('aria-expanded', 'false');
    }
  };

  const open = () => {
    const box = dialog();
    if (!box) return;
    if (box.open) { field().select(); return; }
    field().value = '';
    moved = false;
    list().replaceChildren();
    field().setAttribute('aria-expanded', 'false');
    box.showModal();
    field().focus();
    look();
  };

  document.addEventListener('keydown', event => {
    if (event.key.toLowerCase() === 'k' && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && dialog()) {
      event.preventDefault();
      open();
      return;
    }
    if (event.target !== field()) return;
    const all = options(), at = all.indexOf(chosen());
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault();
      const step = event.key === 'ArrowDown' ? 1 : -1;
      moved = true;
      if (all.length) choose(all[(at + step + all.length) % all.length]);
    } else if (event.key === 'Enter' && !event.isComposing) {
      event.preventDefault();
      if (at >= 0) all[at].click();
      else location.assign(`${dialog().dataset.url}?${new URLSearchParams({ q: field().value.trim() })}`);
    }
  });
  document.addEventListener('input', event => {
    if (event.target !== field()) return;
    moved = false;
    clearTimeout(wait);
    wait = setTimeout(look, 120);
  });
  document.addEventListener('click', event => {
    const box = dialog();
    if (!box || !box.open) return;
    if (event.target === box || event.target.closest('#palette-list [role="option"]')) box.close();
  });
  document.addEventListener('submit', event => {
    if (!event.target.matches('[data-palette-open]')) return;
    event.preventDefault();
    event.stopPropagation();
    open();
  }, true);

  const apple = /Mac|iPhone|iPad/.test(navigator.platform);
  const name = () => document.querySelectorAll('[data-palette-key]').forEach(key => { key.textContent = apple ? '⌘K' : 'Ctrl K'; });
  document.addEventListener('htmx:after:swap', name);
  name();
})();
