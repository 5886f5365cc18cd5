// The pipeline's form: slider and number are one value, presets fill in theirs, a lower
// target lowers compressTo along, modules are shown and moved without losing what is
// typed, and the bar says what saving would change. What is not saved is kept in the tab, and
// is there again when the page is.
(() => {
  'use strict';
  const $ = (selector, root) => root.querySelector(selector);
  const $$ = (selector, root) => [...root.querySelectorAll(selector)];

  // Tells the form and the preview that something of it was changed by a button.
  const tell = element => element.dispatchEvent(new Event('input', { bubbles: true }));

  const text = field => field.type === 'checkbox' ? (field.checked ? 'on' : 'off') : field.value.trim();
  const same = (field, a, b) => a === b || field.type === 'number' && a !== '' && b !== '' && Number(a) === Number(b);
  const short = value => {
    const line = value.trim().replace(/\s+/g, ' ');
    return line === '' ? 'empty' : line.length > 60 ? `${line.slice(0, 60)}…` : line;
  };

  // The modules that run, as the column lists them.
  const running = form => $$('[data-step]', form).filter(step => $('.sw', step).checked).map(step => step.dataset.step);

  const changesOf = (form, begun) => {
    const found = [];
    const now = running(form), both = begun.filter(name => now.includes(name)), order = now.filter(name => begun.includes(name));
    if (both.join() !== order.join()) found.push(['order', both.join(', '), order.join(', ')]);
    const summaries = $('.sw[name="ipc.llmCompression"]', form);
    for (const field of $$('[data-name]', form)) {
      if (field.type === 'radio' && !field.checked) continue;
      if (field.name.startsWith('ipc.llmCompression.') && !summaries.checked) continue; // goes with its switch
      const was = field.dataset.saved ?? field.defaultValue, is = text(field);
      if (!same(field, was.trim(), is)) found.push([field.dataset.name, short(was), short(is)]);
    }
    return found;
  };

  const list = changes => changes.map(([name, was, is]) => {
    const item = document.createElement('span'), before = document.createElement('code'), after = document.createElement('code');
    before.textContent = was;
    after.textContent = is;
    item.append(`${name} `, before, ' → ', after);
    return item;
  });

  // Puts a module in front of, or behind, the next one that runs.
  const move = (form, button) => {
    const step = button.closest('[data-step]'), up = button.dataset.move === 'up';
    let other = step;
    do other = up ? other.previousElementSibling : other.nextElementSibling;
    while (other && !(other.dataset.step && $('.sw', other).checked));
    if (!other) return;
    if (up) other.before(step); else other.after(step);
    tell(step);
    const next = button.disabled ? $(`[data-move="${up ? 'down' : 'up'}"]`, step) : button;
    next.focus();
  };

  // Gives a setting a value, and returns its fields.
  const fill = (form, path, value) => {
    const fields = $$(`[data-name="${path}"]`, form);
    fields.forEach(field => {
      if (field.type === 'checkbox') field.checked = value === 'true' || value === 'on';
      else if (field.type === 'radio') field.checked = field.value === value;
      else field.value = value;
    });
    return fields;
  };

  const useDefault = (form, button) => {
    const fields = fill(form, button.dataset.defaultOf, button.dataset.default);
    tell(fields[0]);
    (fields.find(field => field.checked) || fields[0]).focus();
  };

  // Shows the settings of a module; what is typed elsewhere stays in the form.
  const choose = (form, link) => {
    const name = link.dataset.choose;
    $$('[data-settings]', form).forEach(group => { group.hidden = group.dataset.settings !== name; });
    $$('[data-step]', form).forEach(step => {
      if (step.dataset.step === name) step.setAttribute('aria-current', 'true'); else step.removeAttribute('aria-current');
    });
    $('[data-module]', form).value = name;
    $$('[data-discard]', form).forEach(discard => { discard.href = link.dataset.path; });
    history.replaceState(history.state, '', link.dataset.path);
  };

  // The draft is what is typed and not saved: the settings that differ, and the order of the
  // modules if that does. A browser without storage keeps none.
  const stored = (form, act) => {
    try {
      return act(sessionStorage, `pipeline:${form.dataset.draft}`);
    } catch {
      return null;
    }
  };
  const forget = form => stored(form, (storage, key) => storage.removeItem(key));
  const keep = (form, isChanged) => {
    if (!isChanged) {
      forget(form);
      return;
    }
    const fields = {};
    for (const field of $$('[data-name]', form)) {
      if (field.type === 'radio' && !field.checked) continue;
      if (!same(field, (field.dataset.saved ?? field.defaultValue).trim(), text(field))) fields[field.dataset.name] = field.type === 'checkbox' ? text(field) : field.value;
    }
    const order = $$('[data-step]', form).map(step => step.dataset.step);
    stored(form, (storage, key) => storage.setItem(key, JSON.stringify({ version: $('[name="version"]', form).value, fields, order })));
  };
  const resume = form => {
    const draft = stored(form, (storage, key) => JSON.parse(storage.getItem(key)));
    if (!draft) return;
    if (Number(draft.version) < Number(form.dataset.savedVersion)) { // it was saved, or lost against what was
      forget(form);
      return;
    }
    for (const [path, value] of Object.entries(draft.fields)) fill(form, path, value);
    const steps = draft.order.map(name => $(`[data-step="${name}"]`, form)).filter(Boolean), behind = $$('[data-step]', form).at(-1).nextElementSibling;
    steps.forEach(step => behind.before(step));
  };

  const tuning = form => {
    const bar = $('[data-savebar]', form), changes = $('[data-changes]', form);
    if (bar) resume(form);
    const target = $('[name="ipc.targetUtilization"]', form), slider = $('[data-slider]', form);
    const goal = $('[name="ipc.compressTo"]', form), room = $('[name="ipc.minClear"]', form), turns = $('[name="ipc.preserveLastTurns"]', form);
    const begun = form.dataset.running.split(',').filter(Boolean);
    let wanted = goal.value; // as it was shown or typed, and is again where the target allows it

    const follow = () => {
      const at = Number(target.value), highest = Math.max(at - Number(room.value), at / 2);
      if (at > 0) goal.value = Number(wanted) > highest ? highest.toFixed(2) : wanted;
    };
    const draw = () => {
      slider.value = target.value;
      const byCost = $('[name="ipc.trigger"]:checked', form)?.value === 'break-even';
      slider.disabled = target.disabled || byCost;
      $('[data-decides]', form).hidden = !byCost;
      slider.setAttribute('aria-valuetext', `${Math.round(target.value * 100)} percent of the context window`);
      const order = running(form);
      $$('[data-move]', form).forEach(button => {
        const at = order.indexOf(button.closest('[data-step]').dataset.step);
        button.disabled = at < 0 || at === (button.dataset.move === 'up' ? 0 : order.length - 1);
      });
      $$('[data-default-of]', form).forEach(button => {
        const fields = $$(`[data-name="${button.dataset.defaultOf}"]`, form), field = fields.find(one => one.type !== 'radio' || one.checked) || fields[0];
        const is = field.type === 'checkbox' ? String(field.checked) : text(field);
        button.hidden = same(field, button.dataset.default.trim(), is);
      });
      const others = $$('[data-default-of^="ipc."]', form).every(button => button.hidden || [target.name, turns.name].includes(button.dataset.defaultOf));
      const mark = (preset, is) => is ? preset.setAttribute('aria-current', 'true') : preset.removeAttribute('aria-current');
      const presets = $$('[data-preset]', form), is = preset => others && Number(preset.dataset.target) === Number(target.value) && preset.dataset.keep === turns.value;
      presets.forEach(preset => mark(preset, is(preset)));
      mark($('[data-custom]', form), !presets.some(is));
      if (!bar) return;
      const found = changesOf(form, begun);
      changes.replaceChildren(...list(found));
      bar.hidden = found.length === 0;
      keep(form, found.length > 0);
    };

    slider.addEventListener('input', () => { target.value = Number(slider.value).toFixed(2); follow(); });
    target.addEventListener('input', follow);
    room.addEventListener('input', follow);
    goal.addEventListener('input', () => { wanted = goal.value; });
    form.addEventListener('click', event => { if (event.target.closest('[data-discard]')) forget(form); });
    form.addEventListener('input', draw);
    form.addEventListener('change', draw);
    form.addEventListener('click', event => {
      const pressed = event.target.closest('[data-preset], [data-choose], [data-move], [data-default-of]');
      if (!pressed || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      event.stopPropagation();
      if (pressed.dataset.move) move(form, pressed);
      else if (pressed.dataset.choose) choose(form, pressed);
      else if (pressed.dataset.defaultOf) useDefault(form, pressed);
      else if (!target.disabled) {
        target.value = pressed.dataset.target;
        turns.value = pressed.dataset.keep;
        tell(target);
      }
    }, true);
    const center = () => { // on a phone they stand side by side
      const chosen = $('[data-step][aria-current]', form), column = $('[data-steps]', form);
      column.scrollLeft = chosen.offsetLeft - column.offsetLeft - (column.clientWidth - chosen.offsetWidth) / 2;
    };
    $('[data-advanced]', form).addEventListener('toggle', center);
    center();
    const unfold = () => { // what a link leads to is not left folded away
      const named = location.hash && document.getElementById(location.hash.slice(1)), folded = named && named.closest('[data-advanced]');
      if (!folded || folded.open) return;
      folded.open = true;
      named.scrollIntoView({ block: 'center' });
    };
    addEventListener('hashchange', unfold);
    unfold();
    draw();
  };

  const begin = () => document.querySelectorAll('form[data-tuning]:not([data-ready])').forEach(form => {
    form.dataset.ready = '1';
    tuning(form);
  });
  document.addEventListener('htmx:after:swap', begin);
  begin();
})();
