// Shortcuts: ? lists them, g leads to a page, / to its search. A page declares its own
// on elements, data-key="n" data-key-label="Add a rule", which are focused or clicked;
// what a script of its own does it names on any element: data-keys="j k=Next, previous row|o=Open".
(() => {
  'use strict';
  const within = 1500; // ms from g to the key that follows
  let begun = 0;
  let taken = false; // the key that is down: it types nothing into what it has focused

  const busy = event => event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing ||
    event.target.closest('input:not([type="checkbox"]):not([type="radio"]), select, textarea, [contenteditable]') || document.querySelector('dialog[open]');
  const seen = element => element && (element.offsetParent || element.closest('.nav'));

  const take = event => { taken = true; event.preventDefault(); };
  const follow = element => {
    if (element.matches('input, select, textarea')) { element.focus(); element.select?.(); } else { element.click(); }
  };

  const own = () => {
    const keys = [];
    document.querySelectorAll('[data-keys]').forEach(element => element.dataset.keys.split('|').forEach(pair => {
      const at = pair.indexOf('=');
      if (at > 0) keys.push([pair.slice(0, at).trim(), pair.slice(at + 1).trim()]);
    }));
    if (document.querySelector('[data-rows] [data-row]')) keys.push(['j k', 'Next, previous row'], ['o', 'Open the row']);
    document.querySelectorAll('[data-key][data-key-label]').forEach(element => keys.push([element.dataset.key, element.dataset.keyLabel]));
    return keys;
  };

  const help = () => {
    const dialog = document.getElementById('shortcuts');
    if (!dialog) return;
    const table = dialog.querySelector('[data-here]'), keys = own();
    table.hidden = keys.length === 0;
    table.tBodies[0].replaceChildren(...keys.map(([names, label]) => {
      const row = document.createElement('tr'), head = document.createElement('th'), cell = document.createElement('td');
      head.scope = 'row';
      names.split(' ').forEach(key => head.append(Object.assign(document.createElement('kbd'), { textContent: key }), ' '));
      cell.textContent = label;
      row.append(head, cell);
      return row;
    }));
    dialog.showModal();
  };

  document.addEventListener('keydown', event => {
    taken = false;
    if (busy(event)) return;
    const led = Date.now() - begun < within;
    begun = 0;
    if (led) {
      const link = [...document.querySelectorAll('.nav [data-go]')].find(one => one.dataset.go === event.key);
      if (link) { take(event); link.click(); return; }
    }
    if (event.key === '?') { take(event); help(); return; }
    if (event.key === 'g' && !event.shiftKey) { begun = Date.now(); take(event); return; }
    const target = [...document.querySelectorAll('[data-key]')].find(one => one.dataset.key === event.key && seen(one)) ||
      (event.key === '/' && document.querySelector('main input[type="search"]'));
    if (target && seen(target)) { take(event); follow(target); }
  }, true);
  document.addEventListener('keypress', event => { if (taken) event.preventDefault(); }, true);
  document.addEventListener('keyup', () => { taken = false; }, true);

  // A click beside the box closes it, as Escape does.
  document.addEventListener('click', event => {
    if (event.target.id === 'shortcuts' && event.target.open) event.target.close();
    if (event.target.closest('[data-shut]')) event.target.closest('dialog').close();
  });
})();
