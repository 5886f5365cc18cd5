// Shows that a request takes long: a bar at the top of the page, the status "Loading…" for screen readers, and
// aria-busy on the part that waits. Requests that nobody asked for are left out.
(() => {
  'use strict';
  const patience = 300; // ms
  const words = 'Loading…';
  const root = document.documentElement;
  const open = new Map(); // the timer of each request
  const busy = new Map(); // the part of each request that takes long

  const say = text => {
    const status = document.querySelector('.toast:not(.on)');
    if (status && (text || status.textContent === words)) status.textContent = text;
  };
  const wait = ctx => {
    const part = ctx.target === document.body ? document.querySelector('main') : ctx.target;
    if (!(part instanceof Element)) return;
    busy.set(ctx, part);
    part.setAttribute('aria-busy', 'true');
    root.dataset.waiting = 'yes';
    say(words);
  };
  document.addEventListener('htmx:before:request', event => {
    const { ctx } = event.detail;
    if (ctx.sourceElement.matches('[data-quiet]') && !ctx.sourceEvent?.isTrusted) return;
    open.set(ctx, setTimeout(wait, patience, ctx));
  });
  document.addEventListener('htmx:finally:request', event => {
    const { ctx } = event.detail, part = busy.get(ctx);
    clearTimeout(open.get(ctx));
    open.delete(ctx);
    busy.delete(ctx);
    if (part && ![...busy.values()].includes(part)) part.removeAttribute('aria-busy');
    if (busy.size > 0) return;
    delete root.dataset.waiting;
    say('');
  });
})();
