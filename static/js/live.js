// Hears what happens in the workspace, one stream a tab, while the tab is seen. A page without
// anything below listens too, because the end of the stream shows that the server is gone.
//   data-live="exchanges"  a list with an id: a button offers to show what is new
//   data-live="figures"    an element with an id: refreshed in place where nothing moves
//   data-live="session"    has data-requests of its session at data-address: a button offers
//                          to show what came since
//   data-live="steps"      is sent the event "live"
// Nothing that someone reads moves by itself.
(() => {
  'use strict';
  const quiet = 10000; // ms between two refreshes of figures
  const apart = 1000; // ms between two looks at a session
  const soonest = 2000, latest = 300000; // ms before the stream is opened again
  let source = null, tries = 0, retry = 0, ended = false, hidden = false;
  let waiting = 0, due = 0, refreshed = 0, look = 0;

  const all = kind => [...document.querySelectorAll(`[data-live="${kind}"]`)];
  const button = () => document.querySelector('[data-live-show]');

  const offer = (count = waiting, where = '') => {
    const show = button();
    if (!show || all('exchanges').length + all('figures').length + all('session').length === 0) return;
    show.textContent = count > 0 ? `${count} new request${count === 1 ? '' : 's'}${where} – show` : 'New requests – show';
    show.hidden = false;
  };
  const forget = () => {
    waiting = 0;
    if (button()) button().hidden = true;
  };

  // The page as it is now, or null where that is another one by now.
  const load = async () => {
    const address = location.href;
    const answer = await fetch(address, { headers: { Accept: 'text/html' } });
    if (!answer.ok || answer.redirected || address !== location.href) return null;
    return new DOMParser().parseFromString(await answer.text(), 'text/html');
  };
  const fresh = (page, element) => {
    const found = element.id && page.getElementById(element.id);
    return found ? document.importNode(found, true) : null;
  };
  const settle = element => {
    if (window.htmx) window.htmx.process(element);
    document.dispatchEvent(new CustomEvent('htmx:after:swap', { detail: {} }));
  };
  const isRead = element => {
    const selection = getSelection();
    return element.contains(document.activeElement) || (!selection.isCollapsed && selection.containsNode(element, true));
  };

  // Puts new figures in place of the old, unless someone is in them or the page would
  // move: then they are offered.
  const refresh = async () => {
    clearTimeout(due);
    due = 0;
    refreshed = Date.now();
    const page = await load().catch(() => null);
    if (!page) return;
    all('figures').forEach(element => {
      const now = fresh(page, element);
      if (!now || now.outerHTML === element.outerHTML) return;
      if (isRead(element)) { offer(); return; }
      const { offsetHeight, offsetWidth } = element;
      element.replaceWith(now);
      if (now.offsetHeight !== offsetHeight || now.offsetWidth !== offsetWidth) { now.replaceWith(element); offer(); return; }
      settle(now);
    });
  };

  const show = async () => {
    const page = await load().catch(() => null);
    if (!page) { location.reload(); return; }
    let first = null;
    [...all('exchanges'), ...all('figures')].forEach(element => {
      const now = fresh(page, element);
      if (!now) return;
      element.replaceWith(now);
      settle(now);
      first = first || now;
    });
    forget();
    if (!first) { location.reload(); return; }
    first.tabIndex = -1;
    first.focus({ preventScroll: true });
    first.scrollIntoView({ block: 'nearest' });
  };

  const grew = async () => {
    look = 0;
    const [element] = all('session');
    const answer = element && await fetch(element.dataset.address).catch(() => null);
    if (!answer || !answer.ok || !element.isConnected) return;
    const count = Number(await answer.text()) - Number(element.dataset.requests);
    if (count > 0) offer(count, ' in this session');
  };
  const lookAtSession = () => { if (all('session').length && !look) look = setTimeout(grew, apart); };

  const happened = count => {
    waiting += count;
    lookAtSession();
    all('steps').forEach(element => window.htmx && window.htmx.trigger(element, 'live'));
    if (all('exchanges').length) offer();
    if (all('figures').length && !due) due = setTimeout(refresh, Math.max(0, refreshed + quiet - Date.now()));
  };
  // After a time in which nothing was heard: a list says that there is something only if
  // there is.
  const missed = async () => {
    lookAtSession();
    all('steps').forEach(element => window.htmx && window.htmx.trigger(element, 'live'));
    if (all('figures').length && !due) due = setTimeout(refresh, Math.max(0, refreshed + quiet - Date.now()));
    if (!all('exchanges').length) return;
    const page = await load().catch(() => null);
    if (!page) return;
    const held = root => [...root.querySelectorAll('a[href], .r')].map(element => element.getAttribute('href') || (element.querySelector('time') ? '' : element.textContent)).join();
    if (all('exchanges').some(element => { const now = fresh(page, element); return now && held(now) !== held(element); })) offer();
  };

  const close = () => {
    clearTimeout(retry);
    if (source) source.close();
    source = null;
    delete document.documentElement.dataset.streaming;
  };
  const connect = () => {
    const box = document.querySelector('[data-stream]');
    if (ended || document.hidden || !box) { close(); return; }
    if (source) return;
    source = new EventSource(box.dataset.stream);
    source.addEventListener('open', () => {
      document.documentElement.dataset.streaming = 'yes';
      document.dispatchEvent(new Event('palimpsest:streaming'));
      if (tries > 0 || hidden) missed();
      tries = 0;
      hidden = false;
    });
    source.addEventListener('exchanges', event => happened(Number(event.data) || 0));
    source.addEventListener('missed', missed);
    source.addEventListener('end', () => { ended = true; close(); });
    source.addEventListener('error', () => {
      close();
      document.dispatchEvent(new Event('palimpsest:unheard'));
      retry = setTimeout(connect, Math.min(latest, soonest * 2 ** tries++));
    });
  };

  document.addEventListener('click', event => { if (event.target.closest('[data-live-show]')) show(); });
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) { hidden = true; close(); } else connect();
  });
  document.addEventListener('htmx:after:swap', event => {
    if (event.detail && event.detail.ctx && event.detail.ctx.target === document.body) { waiting = 0; clearTimeout(due); clearTimeout(look); due = look = 0; }
    connect();
  });
  connect();
})();
