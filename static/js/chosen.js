// Lists whose rows are ticked: one box ticks all of the page, and the list's foot says how
// many are.
(() => {
  'use strict';
  const boxes = form => [...document.querySelectorAll(`input[type="checkbox"][name="id"][form="${form}"]`)];

  const count = form => {
    const all = boxes(form), ticked = all.filter(box => box.checked).length;
    document.querySelectorAll(`[data-choose-all="${form}"]`).forEach(box => {
      box.checked = all.length > 0 && ticked === all.length;
      box.indeterminate = ticked > 0 && ticked < all.length;
    });
    document.querySelectorAll(`[data-chosen="${form}"]`).forEach(said => { said.textContent = ticked > 0 ? `${ticked} selected` : ''; });
  };

  document.addEventListener('change', event => {
    const form = event.target.dataset.chooseAll || (event.target.name === 'id' && event.target.getAttribute('form'));
    if (!form) return;
    if (event.target.dataset.chooseAll) boxes(form).forEach(box => { box.checked = event.target.checked; });
    count(form);
  });
  // A browser that goes back ticks what was ticked.
  const begin = () => document.querySelectorAll('[data-choose-all]').forEach(box => count(box.dataset.chooseAll));
  document.addEventListener('htmx:after:swap', begin);
  addEventListener('pageshow', begin);
})();
