// Draws the charts of a page with uPlot from the figures in their data-chart
// attribute. Each chart also has its figures as a table.
(() => {
  'use strict';
  const height = 250;
  const drawn = new Map(); // element → {plot, observer}

  const short = n => {
    const size = Math.abs(n);
    for (const [unit, by] of [['B', 1e9], ['M', 1e6], ['k', 1e3]]) {
      if (size >= by) return `${(n / by).toFixed(size >= 100 * by ? 0 : 1).replace(/\.0$/, '')}${unit}`;
    }
    return String(n);
  };

  // Colours are custom properties with a light and a dark side: the browser
  // resolves them on an element only.
  const colour = (name, element) => {
    element.style.color = `var(--${name})`;
    const resolved = getComputedStyle(element).color;
    element.style.removeProperty('color');
    return resolved;
  };
  const faded = (resolved, alpha) => resolved.replace(/^rgb\((.*)\)$/, `rgba($1, ${alpha})`);

  const when = at => new Date(at * 1000).toLocaleString('en-GB', { weekday: 'short', day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit', timeZoneName: 'short' });

  // Times of the axis: the hour, and the day below where it changes.
  const clock = (_, at) => {
    let last = '';
    return at.map(seconds => {
      const moment = new Date(seconds * 1000);
      const day = moment.toLocaleDateString('en-GB', { day: 'numeric', month: 'short' });
      const hour = moment.toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' });
      const both = day === last ? hour : `${hour}\n${day}`;
      last = day;
      return hour === '00:00' && at.length > 1 && at[1] - at[0] >= 86400 ? day : both;
    });
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
          title.textContent = data.kind === 'time' ? when(data.x[idx]) : `${data.xLabel} ${data.x[idx]}`;
          const rows = data.series.filter(series => series.values[idx] != null).map(series => {
            const row = document.createElement('div'), key = document.createElement('span'), name = document.createElement('span'), value = document.createElement('span');
            key.className = `k ${series.key}`;
            name.textContent = series.label;
            value.textContent = Math.round(series.values[idx]).toLocaleString('en-GB');
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
        const line = colour('verdigris-fill', element), ink = colour('sheet', element);
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

  // Where the lines are drawn: a stacked one on top of the stacked lines behind it.
  const heights = data => data.series.map((series, i) => !series.stack ? series.values : series.values.map((value, at) =>
    value == null ? null : data.series.slice(i).reduce((sum, other) => other.stack ? sum + (other.values[at] || 0) : sum, 0)));

  const draw = element => {
    const data = JSON.parse(element.dataset.chart);
    const ink = colour('ink-3', element), grid = colour('grid', element);
    const axis = { stroke: ink, font: '11px Geist, sans-serif', grid: { stroke: grid, width: 1 }, ticks: { show: false } };
    const options = {
      width: element.clientWidth, height,
      padding: [12, 8, 0, 0],
      legend: { show: false },
      cursor: { y: false, points: { size: 6 } },
      scales: { x: { time: data.kind === 'time' }, y: { range: (_, low, high) => [0, high > 0 ? high * 1.08 : 1] } },
      axes: [
        { ...axis, grid: { show: false }, ...(data.kind === 'time' ? { size: 42, values: clock } : { size: 26, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000], values: (_, at) => at.map(n => Number.isInteger(n) ? n : '') }) },
        { ...axis, size: 52, values: (_, at) => at.map(short) },
      ],
      series: [{}, ...data.series.map(series => {
        const stroke = colour(series.colour, element);
        return { label: series.label, stroke, width: series.dash ? 1.25 : 1.75, dash: series.dash ? [4, 4] : undefined, fill: series.fill ? faded(stroke, series.fill) : undefined, points: { show: data.x.length < 3 } };
      })],
      plugins: [tooltip(data), ...(data.marks ? [marks(data, element)] : [])],
    };
    const plot = new uPlot(options, [data.x, ...heights(data)], element);
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
    document.querySelectorAll('[data-chart]').forEach(element => { if (!drawn.has(element)) draw(element); });
  };
  const redraw = () => { [...drawn.keys()].forEach(forget); window.palimpsestCharts(); };
  document.addEventListener('palimpsest:theme', redraw);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
})();
