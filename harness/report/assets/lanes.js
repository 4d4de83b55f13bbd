/* Spans of time by row, and how to paint a lane of them at any zoom.

   A span of at least 1.5 pixels is a bar; shorter ones add up in their pixel column, which is then
   split by their share.  So a lane costs one pass over what is in view, and a single long pause
   stays visible among a million microseconds.  Where very much is in view, a summary stands for the
   short spans: their sums in BINS parts of the run, made once per lane (see coarse). */
"use strict";
(() => {
  const BLOCK = 256, BINS = 8192, MANY = 2000;

  /* index[row] = {at: places in order of start, reach: greatest end up to each block} */
  LH.byRow = (row, start, end, rows) => {
    const count = new Int32Array(rows + 1);
    for (let i = 0; i < row.length; i++) if (row[i] < rows) count[row[i]]++;
    const index = [];
    for (let r = 0; r < rows; r++) index.push({ at: new Int32Array(count[r]), reach: null });
    count.fill(0);
    for (let i = 0; i < row.length; i++) if (row[i] < rows) index[row[i]].at[count[row[i]]++] = i;
    for (const one of index) {
      const blocks = Math.ceil(one.at.length / BLOCK);
      one.reach = new Float64Array(blocks);
      let reach = -Infinity;
      for (let b = 0; b < blocks; b++) {
        const stop = Math.min(one.at.length, (b + 1) * BLOCK);
        for (let k = b * BLOCK; k < stop; k++) if (end[one.at[k]] > reach) reach = end[one.at[k]];
        one.reach[b] = reach;
      }
    }
    return index;
  };

  /* [lo, hi) of the places in a row that may touch t0..t1 */
  LH.range = (one, start, t0, t1) => {
    let lo = 0, hi = one.reach.length;
    while (lo < hi) { const m = (lo + hi) >> 1; if (one.reach[m] < t0) lo = m + 1; else hi = m; }
    const first = lo * BLOCK;
    lo = first; hi = one.at.length;
    while (lo < hi) { const m = (lo + hi) >> 1; if (start[one.at[m]] <= t1) lo = m + 1; else hi = m; }
    return [Math.min(first, lo), lo];
  };

  /* Sums of the spans that are shorter than a bin, by bin and group; the longer ones by place. */
  const coarse = (one, start, end, n, group, whole) => {
    const sums = new Float32Array(BINS * n), wide = whole / BINS, long = [];
    for (let k = 0; k < one.at.length; k++) {
      const i = one.at[k], length = end[i] - start[i];
      if (length >= wide) { long.push(i); continue; }
      const c = group(i);
      if (c >= 0) sums[Math.min(BINS - 1, Math.max(0, start[i] / wide | 0)) * n + c] += Math.max(length, wide * .01);
    }
    return { sums, long, wide };
  };

  /* Paints one lane. view: {t0, t1, x0, width, scale, whole}; group(i): which of colours, -1 for
     none; name: of the lane, under which a summary may be kept in one.kept. */
  LH.paintLane = (g, view, one, start, end, y, h, colours, group, name) => {
    const [lo, hi] = LH.range(one, start, view.t0, view.t1);
    const { t0, scale, width, x0, whole } = view, n = colours.length;
    const shares = new Float32Array(width * n), bars = colours.map(() => []);
    let tiny = false, list = one.at, first = lo, last = hi;
    if (hi - lo > MANY && whole / BINS * scale <= 1) {
      one.kept = one.kept || {};
      const sum = one.kept[name] = one.kept[name] || coarse(one, start, end, n, group, whole);
      const b0 = Math.max(0, view.t0 / sum.wide | 0), b1 = Math.min(BINS, Math.ceil(view.t1 / sum.wide));
      for (let b = b0; b < b1; b++) {
        const column = ((b + .5) * sum.wide - t0) * scale | 0;
        if (column < 0 || column >= width) continue;
        for (let c = 0; c < n; c++) shares[column * n + c] += sum.sums[b * n + c] * scale;
      }
      tiny = true; list = sum.long; first = 0; last = list.length;
    }
    for (let k = first; k < last; k++) {
      const i = list[k], a = (start[i] - t0) * scale, b = (end[i] - t0) * scale;
      if (b < 0) continue;
      const c = group(i);
      if (c < 0) continue;
      if (b - a >= 1.5) bars[c].push(a < -2 ? -2 : a, b > width + 2 ? width + 2 : b);
      else {
        const column = a | 0;
        if (a >= 0 && column < width) { shares[column * n + c] += Math.max(b - a, 0.2); tiny = true; }
      }
    }
    g.save();
    g.beginPath(); g.rect(x0, y, width, h); g.clip();
    for (let c = 0; c < n; c++) {
      g.fillStyle = colours[c];
      const list = bars[c];
      for (let k = 0; k < list.length; k += 2) g.fillRect(x0 + list[k], y, list[k + 1] - list[k], h);
    }
    g.restore();
    if (tiny) for (let column = 0; column < width; column++) {
      let sum = 0;
      for (let c = 0; c < n; c++) sum += shares[column * n + c];
      if (!sum) continue;
      const alpha = g.globalAlpha * Math.min(1, 0.4 + 0.6 * sum);
      let top = y, left = h;
      for (let c = 0; c < n && left > 0; c++) {
        const share = shares[column * n + c];
        if (!share) continue;
        const tall = Math.min(left, Math.max(1, Math.round(h * share / sum)));
        LH.dots.put(x0 + column, top, 1, tall, colours[c], alpha);
        top += tall; left -= tall;
      }
    }
  };

  /* A layer of single pixels: tens of thousands of small rectangles take a canvas 100 ms, as
     pixels of one image they take two. begin, put ..., flush onto the canvas. */
  const packed = new Map();
  const pack = (colour) => {
    let found = packed.get(colour);
    if (found === undefined) {
      const [r, g, b] = colour.match(/[\d.]+/g).map(Number);
      packed.set(colour, found = (b << 16) | (g << 8) | r);
    }
    return found;
  };
  LH.layer = () => {
    const canvas = document.createElement("canvas");
    let image = null, pixels = null, used = false;
    return {
      begin: (width, height) => {
        width |= 0; height = Math.ceil(height);
        if (!image || image.width !== width || image.height !== height) {
          canvas.width = width; canvas.height = height;
          image = canvas.getContext("2d").createImageData(width, height);
          pixels = new Uint32Array(image.data.buffer);
        } else if (used) pixels.fill(0);
        used = false;
      },
      put: (x, y, w, h, colour, alpha) => {
        const value = (pack(colour) | (Math.round(alpha * 255) << 24)) >>> 0, wide = image.width;
        used = true;
        for (let row = y | 0; row < (y | 0) + h; row++) for (let column = x | 0; column < (x | 0) + w; column++) {
          if (column >= 0 && column < wide && row >= 0) pixels[row * wide + column] = value;
        }
      },
      flush: (g) => {
        if (!used) return;
        canvas.getContext("2d").putImageData(image, 0, 0);
        g.drawImage(canvas, 0, 0);
      },
    };
  };
  LH.dots = LH.layer();

  /* Marks are paths: fonts differ, and a missing one must not hide a stale write. */
  LH.mark = (g, shape, x, y, half, colour) => {
    g.beginPath();
    if (shape === "cross") {
      g.strokeStyle = colour; g.lineWidth = Math.max(2, half * .55);
      g.moveTo(x - half, y - half); g.lineTo(x + half, y + half);
      g.moveTo(x + half, y - half); g.lineTo(x - half, y + half);
      g.stroke(); g.lineWidth = 1;
      return;
    }
    g.fillStyle = colour;
    g.moveTo(x, y - half); g.lineTo(x + half, y + (shape === "diamond" ? 0 : half));
    if (shape === "diamond") g.lineTo(x, y + half);
    g.lineTo(x - half, y + (shape === "diamond" ? 0 : half));
    g.fill();
  };

  /* A canvas in CSS pixels whatever the screen's density. */
  LH.fit = (canvas, width, height) => {
    const ratio = window.devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.height = `${height}px`;
    }
    const g = canvas.getContext("2d");
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.clearRect(0, 0, width, height);
    return g;
  };

  /* 1, 2 or 5 times a power of ten, so that about `wanted` steps fit into span. */
  LH.niceStep = (span, wanted) => {
    const raw = span / wanted, power = 10 ** Math.floor(Math.log10(raw));
    return power * [1, 2, 5, 10].find((m) => m * power >= raw);
  };

  LH.time = (ms, step) => {
    if (step >= 1000) return `${+(ms / 1000).toFixed(3)} s`;
    if (step >= 100) return `${(ms / 1000).toFixed(1)} s`;
    const digits = Math.max(0, Math.min(6, Math.ceil(-Math.log10(step))));
    return `${ms.toFixed(digits)} ms`;
  };
  LH.ms = (ms) => `${ms.toFixed(3)} ms`;
})();
