/* Latency of each operation (own canvas), quantiles and rate (uPlot); all follow the timeline. */
"use strict";
(() => {
  const MANY = 20000, PARTS = 2048, LEFT = 150, RIGHT = 10, FOOT = 20, HEIGHT = 240;
  const LEVELS = 160, LOWEST = 1e-3, DECADES = 8; // 1 us to 100 s, 20 levels a decade
  const level = (ms) => Math.max(0, Math.min(LEVELS - 1, (Math.log10(Math.max(ms, LOWEST)) + 3) / DECADES * LEVELS | 0));
  const levelMs = (l) => 10 ** ((l + .5) / LEVELS * DECADES - 3);

  const words = (ms) => (ms < .999 ? `${+(ms * 1000).toPrecision(3)} µs` : ms < 999 ? `${+ms.toPrecision(3)} ms` : `${+(ms / 1000).toPrecision(3)} s`);
  const decade = (v) => Math.abs(Math.log10(v) - Math.round(Math.log10(v))) < 1e-6;

  /* Operations by time bin (some twenty operations each, so that a quantile means something): counts by outcome, quantiles of latency from a histogram. */
  const summarise = ({ ops }, end) => {
    const BINS = Math.max(12, Math.min(240, ops.start.length / 20 | 0));
    const hist = new Uint32Array(BINS * LEVELS), ok = new Float64Array(BINS), fail = new Float64Array(BINS), info = new Float64Array(BINS);
    for (let i = 0; i < ops.start.length; i++) {
      const bin = Math.max(0, Math.min(BINS - 1, ops.end[i] / end * BINS | 0)), outcome = ops.kind[i] & 3;
      (outcome === 0 ? ok : outcome === 1 ? fail : info)[bin]++;
      if (outcome < 2) hist[bin * LEVELS + level(ops.end[i] - ops.start[i])]++;
    }
    const seconds = end / BINS / 1000, times = [], found = { p50: [], p90: [], p99: [], max: [] };
    for (let bin = 0; bin < BINS; bin++) {
      times.push((bin + .5) * end / BINS / 1000);
      let total = 0, sum = 0, top = 0;
      for (let l = 0; l < LEVELS; l++) { const n = hist[bin * LEVELS + l]; total += n; if (n) top = l; }
      const at = { p50: null, p90: null, p99: null, max: total ? levelMs(top) : null };
      for (let l = 0; total && l <= top; l++) {
        sum += hist[bin * LEVELS + l];
        for (const [name, q] of [["p50", .5], ["p90", .9], ["p99", .99]]) if (at[name] === null && sum >= q * total) at[name] = levelMs(l);
      }
      for (const name in found) found[name].push(at[name]);
    }
    const rate = (counts) => Array.from(counts, (n) => n / seconds);
    return { times, found, rates: [rate(ok), rate(fail), rate(info)] };
  };

  LH.makePlots = (data, timeline) => {
    const { meta, ops } = data, end = timeline.end, canvas = document.getElementById("scatter");
    const sums = summarise(data, end), dots = LH.layer();
    let lowest = Infinity, highest = 0;
    for (let i = 0; i < ops.start.length; i++) {
      const d = ops.end[i] - ops.start[i];
      if (d > highest) highest = d;
      if (d > 0 && d < lowest) lowest = d;
    }
    lowest = 10 ** Math.floor(Math.log10(Math.max(LOWEST, Math.min(lowest, highest || 1))));
    highest = 10 ** Math.ceil(Math.log10(Math.max(lowest * 10, highest)));

    /* Counts by part of the run and cell of latency, for views of very many operations. */
    let kept = null;
    const spread = (levels, rowOf) => {
      const found = [0, 1, 2].map(() => new Uint16Array(PARTS * levels));
      for (let i = 0; i < ops.start.length; i++) {
        const part = Math.max(0, Math.min(PARTS - 1, ops.start[i] / end * PARTS | 0));
        found[Math.min(2, ops.kind[i] & 3)][part * levels + rowOf(ops.end[i] - ops.start[i])]++;
      }
      return found;
    };

    /* One dot for each occupied cell, in the colour of most of its operations. */
    const scatter = () => {
      const { t0, t1 } = timeline.view, wide = canvas.clientWidth, colours = timeline.colours();
      if (!wide) return;
      const g = LH.fit(canvas, wide, HEIGHT), w = wide - LEFT - RIGHT, h = HEIGHT - FOOT - 6, scale = w / (t1 - t0);
      const [lo, hi] = LH.between(ops.start, t0, t1), CELL = hi - lo < 8000 ? 4 : 2;
      const columns = Math.ceil(w / CELL), levels = Math.ceil(h / CELL), span = Math.log10(highest / lowest);
      const y = (ms) => 6 + h - Math.log10(Math.max(ms, lowest) / lowest) / span * h;
      g.fillStyle = colours.fault; g.globalAlpha = .14;
      for (const fault of meta.faults) {
        const a = Math.max(LEFT, LEFT + (fault.start - t0) * scale), b = Math.min(LEFT + w, LEFT + (fault.end - t0) * scale);
        if (b >= a) g.fillRect(a, 6, Math.max(1, b - a), h);
      }
      g.globalAlpha = 1; g.font = "11px system-ui, 'DejaVu Sans', sans-serif"; g.textBaseline = "middle"; g.textAlign = "right";
      for (let ms = lowest; ms <= highest * 1.001; ms *= 10) {
        g.strokeStyle = colours.grid; g.beginPath(); g.moveTo(LEFT, y(ms)); g.lineTo(LEFT + w, y(ms)); g.stroke();
        g.fillStyle = colours.muted;
        g.fillText(words(ms), LEFT - 6, y(ms));
      }
      const step = LH.niceStep(t1 - t0, Math.max(3, w / 130));
      g.textAlign = "center";
      for (let t = Math.ceil(t0 / step) * step; t <= t1; t += step) g.fillText(LH.time(t, step), Math.min(LEFT + (t - t0) * scale, LEFT + w - 22), HEIGHT - FOOT / 2);
      dots.begin(wide, HEIGHT);
      const cells = [0, 1, 2].map(() => new Uint32Array(columns * levels)), marked = [];
      const coarse = hi - lo > MANY && end / PARTS * scale <= CELL;
      if (coarse) {
        kept = kept || spread(levels, (d) => Math.max(0, Math.min(levels - 1, (y(d) - 6) / CELL | 0)));
        for (let part = Math.max(0, t0 / end * PARTS | 0); part < Math.min(PARTS, Math.ceil(t1 / end * PARTS)); part++) {
          const column = ((part + .5) * end / PARTS - t0) * scale / CELL | 0;
          if (column < 0 || column >= columns) continue;
          for (let c = 0; c < 3; c++) for (let row = 0; row < levels; row++) cells[c][column * levels + row] += kept[c][part * levels + row];
        }
      }
      for (let i = coarse ? hi : lo; i < hi; i++) {
        const outcome = Math.min(2, ops.kind[i] & 3), d = ops.end[i] - ops.start[i];
        const column = (ops.start[i] - t0) * scale / CELL | 0, row = Math.max(0, Math.min(levels - 1, (y(d) - 6) / CELL | 0)), at = column * levels + row;
        cells[outcome][at]++;
        if (outcome && marked.length < 1501) marked.push(i);
      }
      const tints = [colours.hold, colours.fail, colours.info];
      for (let c = 0; c < 3; c++) {
        for (let at = 0; at < columns * levels; at++) {
          const n = cells[c][at];
          if (n && n >= cells[0][at] && n >= cells[1][at] && n >= cells[2][at]) dots.put(LEFT + (at / levels | 0) * CELL, 6 + at % levels * CELL, CELL, CELL, tints[c], 1);
        }
      }
      dots.flush(g);
      if (!coarse && marked.length < 1501) for (const i of marked) {
        const info = (ops.kind[i] & 3) > 1;
        LH.mark(g, info ? "diamond" : "triangle", LEFT + (ops.start[i] - t0) * scale, y(ops.end[i] - ops.start[i]), 4, info ? colours.info : colours.fail);
      }
    };

    let charts = [];
    const build = () => {
      for (const chart of charts) chart.destroy();
      const colours = timeline.colours();
      const shade = (u) => {
        const g = u.ctx;
        g.save(); g.fillStyle = colours.fault; g.globalAlpha = .14;
        for (const fault of meta.faults) {
          const a = Math.max(u.bbox.left, u.valToPos(fault.start / 1000, "x", true)), b = Math.min(u.bbox.left + u.bbox.width, u.valToPos(fault.end / 1000, "x", true));
          if (b >= a) g.fillRect(a, u.bbox.top, Math.max(1, b - a), u.bbox.height);
        }
        g.restore();
      };
      const axes = { stroke: colours.muted, grid: { stroke: colours.grid, width: 1 }, ticks: { stroke: colours.grid } };
      const line = (label, stroke, dash, unit) => ({ label, stroke, dash, width: 1.5, spanGaps: false, points: { show: sums.times.length < 80, size: 4, fill: stroke }, value: (u, v) => (v == null ? "–" : unit(v)) });
      const rate = (v) => `${+v.toPrecision(3)}/s`;
      const make = (id, series, columns, scale, unit) => {
        const keep = (u, splits) => splits.map((v) => (scale.distr !== 3 || decade(v) ? v : null));
        const box = document.getElementById(id);
        return new uPlot({
          width: Math.max(200, box.clientWidth), height: 200, padding: [8, RIGHT, 0, 0],
          scales: { x: { time: false, range: () => [timeline.view.t0 / 1000, timeline.view.t1 / 1000] }, y: scale },
          axes: [{ ...axes, values: (u, list) => list.map((v) => `${+v.toPrecision(7)} s`) }, { ...axes, size: LEFT, filter: keep, grid: { ...axes.grid, filter: keep }, ticks: { ...axes.ticks, filter: keep }, values: (u, list) => list.map((v) => (v == null ? "" : unit(v))) }],
          series: [{ label: "time", value: (u, v) => (v == null ? "–" : `${v.toFixed(2)} s`) }, ...series],
          cursor: { drag: { x: true, y: false, setScale: false } },
          hooks: {
            drawClear: [shade],
            setSelect: [(u) => {
              if (u.select.width < 4) return;
              timeline.show(u.posToVal(u.select.left, "x") * 1000, u.posToVal(u.select.left + u.select.width, "x") * 1000);
              u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
            }],
          },
        }, [sums.times, ...columns], box);
      };
      charts = [
        make("quantiles", [line("p50", colours.hold, [], words), line("p90", colours.lease, [6, 3], words), line("p99", colours.info, [2, 3], words), line("max", colours.over, [8, 3, 2, 3], words)],
          Object.values(sums.found), { distr: 3 }, words),
        make("rate", [line("ok", colours.hold, [], rate), line("refused", colours.fail, [6, 3], rate), line("unknown", colours.info, [2, 3], rate)],
          sums.rates, { range: (u, lo, hi) => [0, Math.max(1, hi * 1.05)] }, rate),
      ];
    };
    let due = 0, shown = [];
    /* uPlot redraws after the timeline has: panning must not wait for it. */
    const follow = () => {
      scatter();
      clearTimeout(due);
      due = setTimeout(() => {
        const { t0, t1 } = timeline.view;
        if (shown[0] === t0 && shown[1] === t1) return;
        shown = [t0, t1];
        for (const chart of charts) chart.setScale("x", { min: t0 / 1000, max: t1 / 1000 });
      }, 60);
    };
    build();
    return { follow, build, resize: () => { for (const chart of charts) chart.setSize({ width: Math.max(200, chart.root.parentElement.clientWidth), height: 200 }); } };
  };
})();
