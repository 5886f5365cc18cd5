// What pages do beyond links and forms. Everything works without it.
(() => {
  'use strict';
  const $ = (selector, root = document) => root.querySelector(selector);
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

  let hiding = 0;
  const toast = text => {
    const box = $('.toast');
    if (!box) return;
    box.textContent = text;
    box.classList.add('on');
    clearTimeout(hiding);
    hiding = setTimeout(() => box.classList.remove('on'), 1800);
  };

  // Copies a text and says so; where the browser does not allow that, it is shown another way.
  const copy = async (text, otherwise) => {
    try {
      await navigator.clipboard.writeText(text);
      toast('Copied');
    } catch {
      otherwise();
    }
  };
  const copyText = button => {
    const source = document.getElementById(button.dataset.copy);
    if (!source) return;
    copy(source.textContent, () => {
      getSelection().selectAllChildren(source);
      toast('Selected: copy it with your keyboard');
    });
  };
  // A link is copied as a whole address, which opens the page wherever it is pasted.
  const copyLink = button => {
    const address = location.origin + button.dataset.link;
    copy(address, () => prompt('Copy this link', address));
  };

  // Sections under one another become panels of the tabs above them.
  const tabs = box => {
    const panels = $$(':scope > section', box);
    const buttons = $$(':scope > [role="tablist"] > [role="tab"]', box);
    const select = chosen => panels.forEach((panel, i) => {
      panel.hidden = i !== chosen;
      buttons[i].setAttribute('aria-selected', i === chosen);
      buttons[i].tabIndex = i === chosen ? 0 : -1;
    });
    buttons.forEach((button, i) => {
      panels[i].setAttribute('role', 'tabpanel');
      panels[i].setAttribute('aria-labelledby', button.id);
      button.addEventListener('click', () => select(i));
      button.addEventListener('keydown', event => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (!step) return;
        const next = (i + step + panels.length) % panels.length;
        select(next);
        buttons[next].focus();
      });
    });
    select(0);
  };

  // A dialog that came with the page becomes modal. Escape does what its close
  // link does, if it has one.
  const modal = dialog => {
    if (dialog.open) dialog.close();
    dialog.showModal();
    dialog.addEventListener('cancel', event => {
      event.preventDefault();
      const close = $('[data-close]', dialog);
      if (close) close.click();
    });
  };

  const enhance = () => {
    const once = (selector, work) => $$(selector).forEach(element => {
      if (element.dataset.ready) return;
      element.dataset.ready = '1';
      work(element);
    });
    once('[data-tabs]', tabs);
    once('dialog[data-modal]', modal);
    once('.turns', list => {
      const row = $('[aria-current]', list);
      if (row) list.scrollTop = Math.max(0, row.offsetTop - list.offsetTop - list.clientHeight / 3);
    });
    if (window.palimpsestCharts) window.palimpsestCharts();
  };

  // After a swap, what a screen reader hears is what is new.
  const refocus = target => {
    if ($('dialog[open]')) return;
    const wrong = $('[aria-invalid="true"]');
    if (target === document.body) {
      const heading = wrong || $('[autofocus]') || $('main h1') || $('main');
      if (!heading.matches('input, select, textarea, button, a')) heading.tabIndex = -1;
      heading.focus({ preventScroll: heading !== wrong });
      if (heading !== wrong) scrollTo(0, 0);
      return;
    }
    const part = $('[data-focus]', target.isConnected ? target : document);
    if (part) { part.tabIndex = -1; part.focus({ preventScroll: true }); }
  };

  document.addEventListener('click', event => {
    const button = event.target.closest('[data-copy]');
    if (button) copyText(button);
    const link = event.target.closest('[data-link]');
    if (link) copyLink(link);
    const show = event.target.closest('[data-show-side]');
    if (show) {
      $('.sbs').dataset.show = show.dataset.showSide;
      $$('[data-show-side]').forEach(other => other.setAttribute('aria-pressed', other === show));
    }
  });
  document.addEventListener('htmx:after:swap', event => {
    enhance();
    const ctx = event.detail && event.detail.ctx;
    if (!ctx || (ctx.sourceElement && ctx.sourceElement.matches('[data-quiet]'))) return;
    refocus(ctx.target === document.body ? document.body : document.getElementById(ctx.target.id) || document.body);
  });
  enhance();
})();
