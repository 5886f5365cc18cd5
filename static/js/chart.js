// Draws the charts of a page with uPlot from the figures in their data-chart
// attribute. Each chart also has its figures as a table.
(() => {
  'use strict';
  const usual = 250; // pixels
  const drawn = new Map(); // element → {plot, observer}

  const short = n => {
    const size = Math.abs(n);
    for (const [unit, by] of [['B', 1e9], ['M', 1e6], ['k', 1e3]]) {
      if (size >= by) return `${(n / by).toFixed(size >= 100 * by ? 0 : 1).replace(/\.0$/, '')}${unit}`;
    }
    return String(n);
  };

  // Colors are custom properties with a light and a dark side: the browser
  // resolves them on an element only.
  const color = (name, element) => {
    element.style.color = `var(--${name})`;
    const resolved = getComputedStyle(element).color;
    element.style.removeProperty('color');
    return resolved;
  };
  const faded = (resolved, alpha) => resolved.replace(/^rgb\((.*)\)$/, `rgba($1, ${alpha})`);

  const when = (at, zone) => new Date(at * 1000).toLocaleString('en-GB', { weekday: 'short', day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit', timeZoneName: 'short', timeZone: zone });

  // Times of the axis: the hour, and the day below where it changes; days alone where
  // none has two.
  const clock = zone => (_, at) => {
    const days = at.length > 1 && at[1] - at[0] >= 82800, week = days && at.at(-1) - at[0] < 8 * 86400;
    const dayOf = { day: 'numeric', month: week ? undefined : 'short', weekday: week ? 'short' : undefined, timeZone: zone };
    let last = '';
    return at.map(seconds => {
      const moment = new Date(seconds * 1000);
      const day = moment.toLocaleDateString('en-GB', dayOf);
      if (days) return day;
      const hour = moment.toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit', timeZone: zone });
      const both = day === last ? hour : `${hour}\n${day}`;
      last = day;
      return both;
    });
  };

  // How values of a unit are written: on the axis, and exactly.
  const units = {
    '': { axis: short, exact: n => Math.round(n).toLocaleString('en-GB') },
    micros: { axis: n => `${+(n / 1000).toPrecision(3)} ms`, exact: n => `${(n / 1000).toFixed(n < 10000 ? 2 : 1)} ms` },
    share: { axis: n => `${+(n / 100).toFixed(1)}%`, exact: n => `${(n / 100).toFixed(2)}%` },
  };

  // Rows of the box beside the cursor.
  const rowsAt = (data, idx) => {
    const rows = data.series.map(series => ({ key: series.key, label: series.label, value: series.values[idx] }));
    if (data.gap) rows.push({ key: 'gap', label: data.gap, value: data.series[0].values[idx] - data.series[1].values[idx] });
    return rows.filter(row => row.value != null);
  };

  // The box beside the cursor with all values at one place.
  const tooltip = data => {
    let box;
    return {
      hooks: {
        init: plot => {
          box = document.createElement('div');
          box.className = 'tip';
          plot.over.append(box);
          plot.over.addEventListener('mouseleave', () => box.classList.remove('on'));
        },
        setCursor: plot => {
          const { idx, left } = plot.cursor;
          if (idx == null || left < 0) { box.classList.remove('on'); return; }
          const title = document.createElement('b');
          title.textContent = data.kind === 'time' ? when(data.x[idx], data.zone) : `${data.xLabel} ${data.x[idx]}`;
          const rows = rowsAt(data, idx).map(series => {
            const row = document.createElement('div'), key = document.createElement('span'), name = document.createElement('span'), value = document.createElement('span');
            key.className = `k ${series.key}`;
            name.textContent = series.label;
            value.textContent = units[data.unit || ''].exact(series.value);
            row.append(key, name, value);
            return row;
          });
          box.replaceChildren(title, ...rows);
          box.classList.add('on');
          const width = box.offsetWidth;
          box.style.left = `${left + width + 24 > plot.over.clientWidth ? Math.max(0, left - width - 12) : left + 12}px`;
        },
      },
    };
  };

  // Numbered marks: where something happened.
  const marks = (data, element) => ({
    hooks: {
      draw: plot => {
        const { ctx } = plot, ratio = devicePixelRatio || 1;
        const line = color('verdigris-fill', element), ink = color('sheet', element);
        ctx.save();
        data.marks.forEach(mark => {
          const x = Math.round(plot.valToPos(mark.x, 'x', true));
          if (x < plot.bbox.left || x > plot.bbox.left + plot.bbox.width) return;
          ctx.strokeStyle = line;
          ctx.lineWidth = ratio;
          ctx.setLineDash([4 * ratio, 4 * ratio]);
          ctx.beginPath();
          ctx.moveTo(x, plot.bbox.top);
          ctx.lineTo(x, plot.bbox.top + plot.bbox.height);
          ctx.stroke();
          ctx.setLineDash([]);
          ctx.fillStyle = line;
          ctx.beginPath();
          ctx.arc(x, plot.bbox.top + 2 * ratio, 7 * ratio, 0, 7);
          ctx.fill();
          ctx.fillStyle = ink;
          ctx.font = `600 ${10 * ratio}px Geist, sans-serif`;
          ctx.textAlign = 'center';
          ctx.textBaseline = 'middle';
          ctx.fillText(mark.text, x, plot.bbox.top + 2.5 * ratio);
        });
        ctx.restore();
      },
    },
  });

  // A dragged range becomes the page's: its ends go into the address. The reader stays
  // where they are.
  const zoom = (data, element) => ({
    hooks: {
      setSelect: plot => {
        const { left, width } = plot.select;
        if (width < 8) return;
        const end = (place, round) => new Date(round(plot.posToVal(place, 'x') / data.step) * data.step * 1000).toISOString().replace('.000', '');
        const address = new URL(data.zoom, location.href);
        address.searchParams.set('from', end(left, Math.floor));
        address.searchParams.set('to', end(left + width, Math.ceil));
        const link = document.createElement('a');
        link.href = address;
        link.hidden = true;
        link.dataset.quiet = '';
        element.append(link);
        if (window.htmx) window.htmx.process(link);
        link.click();
      },
    },
  });

  // A click on a step leads to the list of what is in it: its ends go into the address, where the
  // list shows them as a filter. A drag is no click.
  const opens = data => {
    let pressed = null;
    return {
      hooks: {
        init: plot => {
          plot.over.classList.add('opens');
          plot.over.title = 'Click for the requests of a step';
          plot.over.addEventListener('mousedown', event => { pressed = event.clientX; });
          plot.over.addEventListener('click', event => {
            const { idx } = plot.cursor;
            if (idx == null || pressed === null || Math.abs(event.clientX - pressed) > 4) return;
            const moment = at => new Date(at * 1000).toISOString().replace('.000', '');
            const address = new URL(data.open, location.href);
            address.searchParams.set('since', moment(data.x[idx]));
            address.searchParams.set('until', moment(data.x[idx] + data.step));
            location.assign(address);
          });
        },
      },
    };
  };

  // Series upon one another: each is drawn with those below it, the highest first.
  const stacked = data => {
    const below = data.x.map(() => 0);
    return data.series.map(series => series.values.map((value, i) => { below[i] += value || 0; return below[i]; }));
  };

  // A value with a gap on both sides has no line: it is a point. Of two or fewer, all are.
  const points = values => {
    const few = values.filter(value => value != null).length < 3;
    const alone = values.flatMap((value, i) => value != null && (few || values[i - 1] == null && values[i + 1] == null) ? [i] : []);
    return { show: alone.length > 0, size: few ? undefined : 3, filter: () => alone };
  };

  const line = (data, series, element) => {
    const stroke = color(series.color, element);
    if (data.bars) return { label: series.label, fill: stroke, width: 0, paths: uPlot.paths.bars({ size: [0.78, 36] }), points: { show: false } };
    return { label: series.label, stroke, width: series.dash ? 1.25 : 1.75, dash: series.dash ? [4, 4] : undefined, fill: series.fill ? faded(stroke, series.fill) : undefined, spanGaps: data.unit !== undefined && data.unit !== 'share', points: points(series.values) };
  };

  // The ends of the axis of values: shares do not begin at nothing where all are high.
  const ends = data => (_, low, high) => {
    if (data.unit !== 'share') return [0, high > 0 ? high * 1.08 : data.unit === 'micros' ? 1000 : 1];
    return [low > 4500 ? 4000 : 0, 10000];
  };

  // Where the lines are drawn: a stacked one on top of the stacked lines behind it.
  const heights = data => data.series.map((series, i) => !series.stack ? series.values : series.values.map((value, at) =>
    value == null ? null : data.series.slice(i).reduce((sum, other) => other.stack ? sum + (other.values[at] || 0) : sum, 0)));

  const draw = element => {
    const data = JSON.parse(element.dataset.chart), height = data.height || usual;
    const values = data.bars ? stacked(data).reverse() : heights(data);
    const series = data.bars ? [...data.series].reverse() : data.series;
    const ink = color('ink-3', element), grid = color('grid', element);
    const axis = { stroke: ink, font: '11px Geist, sans-serif', grid: { stroke: grid, width: 1 }, ticks: { show: false } };
    const options = {
      width: element.clientWidth, height,
      padding: [12, data.kind === 'time' ? 22 : 14, 0, 0],
      legend: { show: false },
      cursor: {
        y: false, points: { size: 6, show: !data.bars }, drag: { x: true, y: false, setScale: !data.zoom },
        ...(data.sync && { sync: { key: data.sync, scales: ['x', null], filters: { pub: type => type === 'mousemove' || type === 'mouseleave' } } }),
      },
      ...(data.zone && { tzDate: at => uPlot.tzDate(new Date(at * 1000), data.zone) }),
      ...(data.gap && { bands: [{ series: [1, 2], fill: faded(color('lapis-fill', element), 0.22) }] }),
      scales: { x: { time: data.kind === 'time', ...(data.bars && data.x.length > 1 && { range: (_, low, high) => [low - (data.x[1] - data.x[0]) / 2, high + (data.x[1] - data.x[0]) / 2] }) }, y: { range: ends(data) } },
      axes: [
        { ...axis, grid: { show: false }, ...(data.kind === 'time' ? { size: (_, labels) => labels && labels.some(label => label.includes('\n')) ? 42 : 28, values: clock(data.zone) } : { size: 26, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000], values: (_, at) => at.map(n => Number.isInteger(n) ? n : '') }) },
        { ...axis, size: 56, values: (_, at) => at.map(units[data.unit || ''].axis), ...(data.bars && { incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000] }) },
      ],
      series: [{}, ...series.map(one => line(data, one, element))],
      // Kerning would set the decimal point of small figures into the digit before it.
      hooks: { drawClear: [plot => { plot.ctx.fontKerning = 'none'; }] },
      plugins: [tooltip(data), ...(data.marks ? [marks(data, element)] : []), ...(data.zoom ? [zoom(data, element)] : []), ...(data.open ? [opens(data)] : [])],
    };
    const plot = new uPlot(options, [data.x, ...values], element);
    const observer = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height }));
    observer.observe(element);
    drawn.set(element, { plot, observer });
  };

  const forget = element => {
    const { plot, observer } = drawn.get(element);
    observer.disconnect();
    plot.destroy();
    drawn.delete(element);
  };

  window.palimpsestCharts = () => {
    [...drawn.keys()].filter(element => !element.isConnected).forEach(forget);
    document.querySelectorAll('[data-chart]').forEach(element => { if (!drawn.has(element) && element.checkVisibility()) draw(element); });
  };
  document.addEventListener('toggle', () => window.palimpsestCharts(), true); // one that was folded away is seen now
  const redraw = () => { [...drawn.keys()].forEach(forget); window.palimpsestCharts(); };
  document.addEventListener('palimpsest:theme', redraw);
  for (const query of ['(prefers-color-scheme: dark)', 'print']) matchMedia(query).addEventListener('change', redraw); // paper is light
})();
