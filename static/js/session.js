// The page of a session by keyboard, and what the browser checks itself. Everything else
// works without it.
(() => {
  'use strict';
  const $ = (selector, root = document) => root.querySelector(selector);
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

  const turns = () => $$('#read .turns .turn').filter(turn => !turn.closest('li').hidden);

  // j and k: the next and the previous turn. At the end of what is listed more is
  // loaded first, and the step made then.
  let waiting = 0;
  const step = by => {
    const list = turns(), at = list.findIndex(turn => turn.hasAttribute('aria-current'));
    const next = list[at + by];
    waiting = 0;
    if (next) { next.click(); return; }
    const more = $(`#turns-${by > 0 ? 'after' : 'before'} a`);
    if (!more || more.closest('li').hidden) return;
    waiting = by;
    more.click();
  };

  // Rows lead to other turns in the form that is read, and the one that is read is marked.
  const dress = (list, pane) => {
    $$('.turn', list).forEach(turn => {
      const address = new URL(turn.href);
      for (const name of ['view', 'text']) {
        if (pane.dataset[name]) address.searchParams.set(name, pane.dataset[name]);
        else address.searchParams.delete(name);
      }
      turn.href = address.pathname + address.search;
      if (address.searchParams.get('m') === pane.dataset.message) turn.setAttribute('aria-current', 'true');
      else turn.removeAttribute('aria-current');
    });
  };

  // The list follows what is read, so that its row stays in sight.
  const follow = () => {
    const pane = $('#pane'), list = $('#read .turns');
    if (!pane || !list) return;
    dress(list, pane);
    const row = $('[aria-current]', list);
    if (!row) return;
    const top = row.offsetTop - list.offsetTop;
    if (top < list.scrollTop) list.scrollTop = top;
    else if (top + row.offsetHeight > list.scrollTop + list.clientHeight) list.scrollTop = top + row.offsetHeight - list.clientHeight;
  };

  // More turns come in at an end of the list, and what is seen of it stays where it is.
  const meet = target => {
    const list = target.closest('.turns');
    return {
      list, isFirst: target.id === 'turns-before', above: list.scrollTop, below: list.scrollHeight - list.scrollTop,
      focus: target.contains(document.activeElement), neighbor: target.id === 'turns-before' ? null : target.previousElementSibling,
    };
  };
  const joined = ({ list, isFirst, above, below, focus, neighbor }) => {
    if ($('#pane')) dress(list, $('#pane'));
    list.scrollTop = isFirst ? list.scrollHeight - below : above;
    if (focus) (isFirst ? $('.turn', list) : neighbor?.nextElementSibling?.querySelector('.turn'))?.focus({ preventScroll: true });
    if (waiting) step(waiting);
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

  // n and p: the next and the previous message found, around the ends.
  let arriving = false;
  let followed = null; // the link of the message found that was gone to last
  const toHit = by => {
    const list = $$('[data-hit]');
    if (!list.length) return;
    const at = list.findIndex(hit => hit.hasAttribute('aria-current'));
    list[at < 0 ? (by > 0 ? 0 : list.length - 1) : (at + by + list.length) % list.length].click();
  };

  // Enter goes to the next message found, once what was typed has been looked for.
  const enter = event => {
    arriving = $('#found')?.dataset.asked !== event.target.value.trim();
    if (arriving) return;
    event.preventDefault();
    toHit(1);
  };

  // Scrolls a range into the middle of what holds it, and of the window.
  const reveal = range => {
    for (let box = range.startContainer.parentElement; box && box !== document.body; box = box.parentElement) {
      if (box.scrollHeight > box.clientHeight + 1 && /auto|scroll/.test(getComputedStyle(box).overflowY)) {
        box.scrollTop += range.getBoundingClientRect().top - box.getBoundingClientRect().top - box.clientHeight / 2;
      }
    }
    window.scrollBy({ top: range.getBoundingClientRect().top - innerHeight / 2, behavior: 'instant' });
  };

  // What is looked for is marked in the message that is read, and comes into sight.
  const mark = () => {
    const pane = $('#pane'), found = $('#found');
    if (!pane || !found) return;
    $$('[data-hit]:not([hx-boost])', found).forEach(hit => {
      const isRead = new URL(hit.href).search === (followed ?? location).search;
      hit.removeAttribute('aria-current');
      if (isRead) { hit.setAttribute('aria-current', 'true'); hit.scrollIntoView({ block: 'nearest' }); }
    });
    if (!CSS.highlights) return;
    CSS.highlights.delete('found');
    const words = [found.dataset.asked, ...found.dataset.asked.split(/\s+/), ...$$('[data-hit]', found).flatMap(hit => hit.dataset.words.split('\n'))]
      .map(word => word.toLowerCase()).filter((word, at, all) => word.length > 1 && all.indexOf(word) === at);
    if (!words.length) return;
    const ranges = [], texts = document.createTreeWalker($('.sbs, .said', pane) ?? pane, NodeFilter.SHOW_TEXT);
    while (texts.nextNode() && ranges.length < 2000) {
      const text = texts.currentNode, lower = text.data.toLowerCase();
      if (lower.length !== text.data.length || !text.parentElement.checkVisibility?.()) continue;
      for (const word of words) {
        for (let at = lower.indexOf(word); at >= 0; at = lower.indexOf(word, at + word.length)) {
          const range = new Range();
          range.setStart(text, at);
          range.setEnd(text, at + word.length);
          ranges.push(range);
        }
      }
    }
    if (!ranges.length) return;
    CSS.highlights.set('found', new Highlight(...ranges));
    const first = ranges.reduce((a, b) => (a.compareBoundaryPoints(Range.START_TO_START, b) <= 0 ? a : b));
    reveal(first);
    pane.dataset.marked = ranges.length;
  };

  // Copies the original's bytes, whatever the page makes of them.
  const copyBytes = async button => {
    const say = $('[data-check-result]', button.closest('dl'));
    try {
      const answer = await fetch(button.dataset.copyBytes, { credentials: 'same-origin' });
      if (!answer.ok) throw new Error(`status ${answer.status}`);
      await navigator.clipboard.writeText(await answer.text());
      say.textContent = 'Copied the original bytes.';
    } catch (error) {
      say.textContent = `The original could not be copied (${error.message}). The link beside the button opens it.`;
    }
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
    const turn = event.target.closest('#read .turn, [data-hit]');
    if (turn) followed = new URL(turn.href);
    const button = event.target.closest('[data-check-hash]');
    if (button) check(button);
    const copy = event.target.closest('[data-copy-bytes]');
    if (copy) copyBytes(copy);
  });
  document.addEventListener('htmx:before:swap', event => {
    const ctx = event.detail?.ctx;
    if (ctx?.target?.matches?.('.turns .seam')) ctx.seam = meet(ctx.target);
  });
  document.addEventListener('htmx:after:swap', event => {
    const ctx = event.detail?.ctx;
    if (ctx?.seam) joined(ctx.seam);
    else if (ctx?.target?.id === 'pane') { follow(); mark(); }
    else if (ctx?.target?.id === 'found' && arriving) { arriving = false; toHit(1); }
  });
  // A page that was opened at a message found, by htmx too: its address changes after the swap.
  const opened = () => { if ($('#found')?.dataset.asked) { followed = null; mark(); } };
  document.addEventListener('htmx:after:swap', event => { if (event.detail?.ctx?.target === document.body) requestAnimationFrame(opened); });
  opened();
  document.addEventListener('keydown', event => {
    if (event.key === 'Enter' && event.target.matches('[data-find]')) { enter(event); return; }
    if (!$('#read') || $('dialog[open]') || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest('input, textarea, select')) return;
    const act = { j: () => step(1), k: () => step(-1), ']': () => leap(1), '[': () => leap(-1), o: sides, n: () => toHit(1), p: () => toHit(-1), '/': () => $('[data-find]')?.focus() }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
})();
