/* The timeline: who waited, believed, held; what was broken; which fault was under way.

   LH.makeTimeline(data) paints into #lanes and #overview and owns the view {t0, t1} in ms; others
   follow it through onView. Nothing here knows how data was packed or where buttons are. */
"use strict";
(() => {
  const LEFT = 150, RIGHT = 10, AXIS = 22, STRIP = 16, GLYPHS = 300;
  const OPEN = 3, INFO = 2, FAIL = 1;
  const BELIEVED = 1, LEASED = 2, ENDLESS = 4, READS = 8;
  const STALE = 2, REFUSED = 1;
  const SIZES = [ // by number of workers: heights of row, operations, belief, lease
    [16, { row: 46, ops: [4, 9], hold: [15, 15], lease: [32, 9] }],
    [48, { row: 26, ops: [2, 5], hold: [8, 9], lease: [18, 5] }],
    [1e9, { row: 12, ops: [1, 2], hold: [4, 4], lease: [9, 2] }],
  ];
  const NAMES = ["wait", "op", "hold", "on-hold", "lease", "over", "fault", "info", "fail", "fg", "muted", "grid", "bg", "panel", "line", "bad"];

  LH.makeTimeline = (data) => {
    const { meta, ops, holds, writes } = data;
    const chart = document.getElementById("chart"), canvas = document.getElementById("lanes");
    const small = document.getElementById("overview");
    const end = Math.max(meta.end_ms, meta.unit_ms), listeners = [];
    const size = SIZES.find(([max]) => meta.rows.length <= max)[1];
    const waits = new Uint8Array(64);
    for (const place of meta.acquires) waits[place] = 1;
    const view = { t0: meta.focus[0], t1: meta.focus[1], x0: LEFT, width: 0, scale: 0, whole: end };
    let colours = {}, key = -1, focused = -1, rows = [], height = 0, painted = 0;

    const opRows = LH.byRow(ops.row, ops.start, ops.end, meta.rows.length);
    const holdRows = LH.byRow(holds.row, holds.granted, holds.reach, meta.rows.length);
    const keyRows = LH.byRow(holds.keyRow, holds.granted, holds.latest, data.shownKeys.length);

    const layout = () => {
      rows = [];
      let y = AXIS;
      const add = (row) => { rows.push({ ...row, y }); y += row.h; };
      add({ kind: "anomalies", label: "anomalies", h: STRIP + 4 });
      data.shownKeys.forEach((k, place) => {
        if (key < 0 || key === k) add({ kind: "lock", label: `lock ${meta.keys[k] || ""}`, place, h: 24 });
      });
      meta.rows.forEach((label, place) => add({ kind: "worker", label, place, h: size.row }));
      if (writes.time.length) add({ kind: "resource", label: "resource", h: 24 });
      meta.nodes.forEach((node) => add({ kind: "node", label: node.label, node, h: 18 }));
      meta.faults.slice(0, 40).forEach((fault) => add({ kind: "fault", label: `#${fault.id} ${fault.kind}`, fault, h: 18 }));
      height = y + 6;
    };

    const x = (t) => LEFT + (t - view.t0) * view.scale;
    const timeAt = (px) => view.t0 + (px - LEFT) / view.scale;
    const shows = (k) => key < 0 || key === k;

    /* ---- painting ---- */
    const axis = (g) => {
      const step = LH.niceStep(view.t1 - view.t0, Math.max(3, view.width / 130));
      g.font = "11px system-ui, 'DejaVu Sans', sans-serif";
      g.textBaseline = "middle"; g.textAlign = "center";
      for (let t = Math.ceil(view.t0 / step) * step; t <= view.t1; t += step) {
        const at = Math.round(x(t)) + .5;
        g.strokeStyle = colours.grid; g.beginPath(); g.moveTo(at, AXIS); g.lineTo(at, height); g.stroke();
        g.fillStyle = colours.muted; g.fillText(LH.time(t, step), Math.min(at, LEFT + view.width - 24), AXIS / 2);
      }
    };
    const clip = (g) => { g.save(); g.beginPath(); g.rect(LEFT, 0, view.width, height); g.clip(); };
    const band = (g, from, to, y, h) => {
      const a = Math.max(LEFT, x(from)), b = Math.min(LEFT + view.width, x(to));
      if (b >= a) g.fillRect(a, y, Math.max(1, b - a), h);
    };
    const bands = (g) => {
      g.fillStyle = colours.fault;
      for (const fault of meta.faults) {
        g.globalAlpha = .07; band(g, fault.start, fault.end, AXIS, height - AXIS);
        g.globalAlpha = .17;
        for (const row of rows) if (row.kind === "worker" && fault.workers.includes(row.label)) band(g, fault.start, fault.end, row.y, row.h);
        g.globalAlpha = 1;
      }
    };
    const label = (g, row) => {
      g.fillStyle = row.kind === "worker" ? colours.fg : colours.muted;
      g.font = `${row.kind === "worker" ? "600 " : ""}${Math.min(12, Math.max(9, row.h - 3))}px system-ui, 'DejaVu Sans', sans-serif`;
      g.textAlign = "right"; g.textBaseline = "middle";
      let text = row.label;
      while (text.length > 3 && g.measureText(text).width > LEFT - 14) text = `${text.slice(0, -2)}…`;
      g.fillText(text, LEFT - 8, row.y + row.h / 2);
      g.strokeStyle = colours.grid;
      g.beginPath(); g.moveTo(0, row.y + row.h - .5); g.lineTo(LEFT + view.width, row.y + row.h - .5); g.stroke();
    };
    const textIn = (g, text, from, to, y, h, colour) => {
      const a = Math.max(LEFT, from), b = Math.min(LEFT + view.width, to);
      if (b - a < 14 || h < 9) return;
      g.font = `${Math.min(11, h - 2)}px system-ui, 'DejaVu Sans', sans-serif`;
      if (g.measureText(text).width > b - a - 4) return;
      g.fillStyle = colour; g.textAlign = "center"; g.textBaseline = "middle";
      g.fillText(text, (a + b) / 2, y + h / 2 + .5);
    };
    const lease = (g, index, y, h, tint, endless) => {
      const near = (i) => (holds.flags[i] & LEASED && shows(holds.key[i]) ? 0 : -1);
      const fading = (i) => (endless || !(holds.flags[i] & ENDLESS) ? near(i) : -1);
      g.globalAlpha = .35;
      LH.paintLane(g, view, index, holds.sure, holds.latest, y, h, [tint], fading, "latest");
      g.globalAlpha = 1;
      LH.paintLane(g, view, index, holds.lease, holds.sure, y, h, [tint], near, "sure");
    };
    const eachHold = (index, limit, visit) => {
      const [lo, hi] = LH.range(index, holds.granted, view.t0, view.t1);
      if (hi - lo > limit) return;
      for (let k = lo; k < hi; k++) visit(index.at[k]);
    };
    const worker = (g, row) => {
      const marks = [], [oy, oh] = size.ops, [hy, hh] = size.hold, [ly, lh] = size.lease;
      LH.paintLane(g, view, opRows[row.place], ops.start, ops.end, row.y + oy, oh, [colours.wait, colours.op, colours.info], (i) => { // place of a colour
        const outcome = ops.kind[i] & 3;
        if (outcome && marks.length <= GLYPHS) marks.push(i);
        return outcome >= INFO ? 2 : waits[ops.kind[i] >> 2] ? 0 : 1;
      }, "ops");
      LH.paintLane(g, view, holdRows[row.place], holds.granted, holds.believed, row.y + hy, hh, [colours.hold],
        (i) => (holds.flags[i] & BELIEVED && shows(holds.key[i]) ? 0 : -1), "belief");
      lease(g, holdRows[row.place], row.y + ly, lh, colours.lease, true);
      clip(g);
      eachHold(holdRows[row.place], 4000, (i) => {
        const label = holds.token[i] >= 0 ? `${holds.token[i]}` : meta.modes ? (holds.flags[i] & READS ? "r" : "w") : "";
        if (shows(holds.key[i]) && label) textIn(g, label, x(holds.granted[i]), x(holds.believed[i]), row.y + hy, hh, colours["on-hold"]);
      });
      if (marks.length <= GLYPHS && oh > 4) for (const i of marks) {
        const info = (ops.kind[i] & 3) >= INFO;
        LH.mark(g, info ? "diamond" : "triangle", x(ops.end[i]), row.y + oy + oh / 2, 4, info ? colours.info : colours.fail);
      }
      g.restore();
    };
    const lock = (g, row) => {
      const index = keyRows[row.place];
      lease(g, index, row.y + 4, 16, colours.lease, false);
      clip(g);
      eachHold(index, 4000, (i) => {
        if (!(holds.flags[i] & LEASED)) return;
        g.fillStyle = colours.bg;
        g.fillRect(x(holds.lease[i]) - .5, row.y + 4, 1, 16);
        textIn(g, meta.rows[holds.row[i]] || "", x(holds.lease[i]), x(holds.sure[i]), row.y + 4, 16, colours["on-hold"]);
      });
      g.restore();
    };
    const resource = (g, row) => {
      const [lo, hi] = LH.between(writes.time, view.t0, view.t1), seen = new Uint8Array(view.width * 3);
      clip(g);
      for (let k = lo; k < hi; k++) {
        const px = ((writes.time[k] - view.t0) * view.scale) | 0, how = writes.how[k];
        if (px < 0 || px >= view.width || seen[px * 3 + how]) continue;
        seen[px * 3 + how] = 1;
        if (how === 0) { g.fillStyle = colours.op; g.fillRect(LEFT + px - .5, row.y + 13, 1.5, 7); }
        if (how === REFUSED) LH.mark(g, "triangle", LEFT + px, row.y + 8, 4, colours.info);
      }
      for (let px = 0; px < view.width; px++) if (seen[px * 3 + STALE]) LH.mark(g, "cross", LEFT + px, row.y + 11, 5, colours.over);
      g.restore();
    };
    const stale = (g) => {
      for (const k of data.stale) {
        const row = rows.find((r) => r.kind === "worker" && r.place === writes.row[k]);
        if (row && writes.time[k] >= view.t0 && writes.time[k] <= view.t1) LH.mark(g, "cross", x(writes.time[k]), row.y + size.ops[0] + size.ops[1] / 2, size.row > 20 ? 5 : 3, colours.over);
      }
    };
    const red = (g) => {
      g.fillStyle = colours.over;
      for (const [from, to, a, b, k, twice] of meta.overlaps) {
        if (to < view.t0 || from > view.t1 || !shows(k)) continue;
        const lane = twice ? size.lease : size.hold, px = Math.max(LEFT, x(from));
        const wide = Math.max(2, Math.min(LEFT + view.width, x(to)) - px);
        for (const row of rows) {
          if (row.kind === "worker" && (row.place === a || row.place === b)) g.fillRect(px, row.y + lane[0], wide, lane[1]);
          if (twice && row.kind === "lock" && data.shownKeys[row.place] === k) g.fillRect(px, row.y + 4, wide, 16);
        }
      }
    };
    const strip = (g, row) => {
      g.fillStyle = colours.over;
      let last = -9;
      for (const one of data.placed) {
        const mid = x(one.end);
        if (one.end < view.t0 || one.start > view.t1) continue;
        const a = Math.max(LEFT, x(one.start)), b = Math.min(LEFT + view.width, x(one.end));
        g.globalAlpha = .28; g.fillRect(a, row.y + row.h - 7, Math.max(1, b - a), 3); g.globalAlpha = 1;
        const at = Math.min(LEFT + view.width - 4, Math.max(LEFT + 4, mid));
        if (Math.abs(at - last) < 5 && focused !== one.place) continue;
        last = at;
        g.beginPath(); g.moveTo(at - 5, row.y + 3); g.lineTo(at + 5, row.y + 3); g.lineTo(at, row.y + 12); g.fill();
      }
    };
    const outline = (g) => {
      const one = data.placed[focused];
      if (!one) return;
      g.strokeStyle = colours.over; g.lineWidth = 1.5; g.setLineDash([4, 3]);
      for (const row of rows) {
        if (row.kind !== "anomalies" && !(row.kind === "worker" && one.rows.includes(row.place))) continue;
        const a = Math.max(LEFT + 1, x(one.start) - 3), b = Math.min(LEFT + view.width - 1, x(one.end) + 3);
        if (b > a) g.strokeRect(a, row.y + 1, b - a, row.h - 3);
      }
      g.setLineDash([]); g.lineWidth = 1;
    };
    const faults = (g, row) => {
      const list = row.kind === "fault" ? [row.fault] : meta.faults.filter((fault) => row.node.faults.includes(fault.id));
      for (const fault of list) {
        g.fillStyle = colours.fault; g.globalAlpha = fault.bit ? .75 : .3;
        band(g, fault.start, fault.end, row.y + 3, 12);
        g.globalAlpha = 1;
        const text = row.kind === "fault" ? `${fault.targets.join(", ")}${fault.when ? ` (${fault.when})` : ""}` : fault.kind;
        const a = Math.max(LEFT, x(fault.start)), b = Math.min(LEFT + view.width, x(fault.end));
        textIn(g, text, a, b, row.y + 3, 12, LH.isDark() ? "#04192b" : "#ffffff");
      }
    };
    const overview = () => {
      const wide = chart.clientWidth, tall = 40, g = LH.fit(small, wide, tall), scale = view.width / end;
      g.fillStyle = colours.fault; g.globalAlpha = .25;
      for (const fault of meta.faults) g.fillRect(LEFT + fault.start * scale, 0, Math.max(1, (fault.end - fault.start) * scale), tall);
      g.globalAlpha = 1; g.fillStyle = colours.op;
      const top = Math.max(1, ...data.density);
      data.density.forEach((count, place) => {
        const h = 24 * count / top, w = view.width / data.density.length;
        g.fillRect(LEFT + place * w, tall - 2 - h, Math.max(1, w), h);
      });
      g.fillStyle = colours.over;
      for (const one of data.placed) g.fillRect(LEFT + one.end * scale - 1, 1, 2, 10);
      g.strokeStyle = colours.fg; g.lineWidth = 1.5;
      const a = LEFT + view.t0 * scale, b = LEFT + view.t1 * scale;
      g.strokeRect(Math.max(LEFT, a), 1, Math.max(3, Math.min(LEFT + view.width, b) - Math.max(LEFT, a)), tall - 2);
      g.fillStyle = colours.muted; g.font = "11px system-ui, 'DejaVu Sans', sans-serif"; g.textAlign = "right"; g.textBaseline = "middle";
      g.fillText("whole run", LEFT - 8, tall / 2);
    };
    const PAINT = { anomalies: strip, lock, worker, resource, node: faults, fault: faults };
    const paint = () => {
      const began = performance.now();
      view.width = Math.max(100, chart.clientWidth - LEFT - RIGHT) | 0;
      view.scale = view.width / (view.t1 - view.t0);
      const g = LH.fit(canvas, chart.clientWidth, height);
      LH.dots.begin(chart.clientWidth, height);
      axis(g); bands(g);
      for (const row of rows) { PAINT[row.kind](g, row); label(g, row); }
      LH.dots.flush(g);
      clip(g); red(g); stale(g); outline(g); g.restore();
      overview();
      for (const listener of listeners) listener(view);
      painted = performance.now() - began;
    };
    let due = false;
    const later = () => { if (!due) { due = true; requestAnimationFrame(() => { due = false; paint(); }); } };

    /* ---- the view ---- */
    const show = (t0, t1) => {
      const least = meta.unit_ms * 5;
      if (t1 - t0 < least) { const m = (t0 + t1) / 2; t0 = m - least / 2; t1 = m + least / 2; }
      const span = Math.min(t1 - t0, end * 1.02);
      t0 = Math.max(-end * .01, Math.min(t0, end * 1.01 - span));
      view.t0 = t0; view.t1 = t0 + span;
      later();
    };
    const zoom = (factor, at = (view.t0 + view.t1) / 2) => show(at - (at - view.t0) * factor, at + (view.t1 - at) * factor);
    const pan = (share) => { const by = (view.t1 - view.t0) * share; show(view.t0 + by, view.t1 + by); };
    const focus = (place) => {
      const one = data.placed[place];
      if (!one) return null;
      focused = place;
      const margin = Math.max((one.end - one.start) * .6, meta.unit_ms * 20);
      show(one.start - margin, one.end + margin);
      return one;
    };
    const step = (by) => {
      if (!data.placed.length) return null;
      if (focused >= 0) return focus((focused + by + data.placed.length) % data.placed.length);
      const next = data.placed.findIndex((one) => one.end >= view.t0);
      return focus(by > 0 ? Math.max(0, next) : data.placed.length - 1);
    };
    const theme = () => { for (const name of NAMES) colours[name] = LH.colour(name); later(); };

    /* ---- what is under the pointer ---- */
    const find = (px, py) => {
      const row = rows.find((r) => py >= r.y && py < r.y + r.h), t = timeAt(px), slack = 3 / view.scale;
      if (!row || px < LEFT) return null;
      const hit = { row, t, slack, op: -1, hold: -1, write: -1, fault: null, anomaly: null, overlap: null };
      const best = (index, start, stop, from, to) => {
        const [lo, hi] = LH.range(index, start, from, to);
        let found = -1, least = Infinity;
        for (let k = hi - 1, seen = 0; k >= lo && seen < 4000; k--, seen++) {
          const i = index.at[k];
          if (stop[i] < from) continue;
          const off = Math.max(0, start[i] - t, t - stop[i]) * 1e6 + (stop[i] - start[i]);
          if (off < least) { least = off; found = i; }
        }
        return found;
      };
      if (row.kind === "anomalies") hit.anomaly = data.placed.reduce((a, one) => {
        const d = Math.abs(x(one.end) - px);
        return d < 9 && (!a || d < Math.abs(x(a.end) - px)) ? one : a;
      }, null);
      if (row.kind === "fault") hit.fault = row.fault;
      if (row.kind === "node") hit.fault = meta.faults.find((f) => row.node.faults.includes(f.id) && f.start <= t + slack && f.end >= t - slack) || null;
      if (row.kind === "lock") hit.hold = best(keyRows[row.place], holds.lease, holds.latest, t - slack, t + slack);
      if (row.kind === "resource" || row.kind === "worker") {
        const [lo, hi] = LH.between(writes.time, t - 2 * slack, t + 2 * slack);
        for (let k = lo; k < hi && k < lo + 4000; k++) if ((row.kind === "resource" || (writes.row[k] === row.place && writes.how[k] === STALE)) && (hit.write < 0 || writes.how[k] > writes.how[hit.write])) hit.write = k;
      }
      if (row.kind === "worker") {
        const at = py - row.y;
        if (at >= size.hold[0] - 1) {
          const inLease = at >= size.lease[0] - 1;
          hit.hold = best(holdRows[row.place], holds.granted, inLease ? holds.latest : holds.believed, t - slack, t + slack);
          hit.overlap = meta.overlaps.find((o) => o[5] === (inLease ? 1 : 0) && (o[2] === row.place || o[3] === row.place) && o[0] <= t + slack && o[1] >= t - slack) || null;
        } else hit.op = best(opRows[row.place], ops.start, ops.end, t - slack, t + slack);
      }
      return hit;
    };

    layout(); theme();
    return {
      view, show, zoom, pan, focus, step, find, paint, later, theme, x, timeAt, end, LEFT,
      onView: (listener) => listeners.push(listener),
      rows: () => rows, size, colours: () => colours, lastPaint: () => painted,
      focused: () => focused,
      setKey: (k) => { key = k; for (const one of holdRows) one.kept = null; layout(); later(); },
      ENDLESS, OPEN, INFO, FAIL, BELIEVED, LEASED, READS, STALE, REFUSED,
    };
  };

  /* [lo, hi) of a sorted column between two times */
  LH.between = (column, t0, t1) => {
    let lo = 0, hi = column.length;
    while (lo < hi) { const m = (lo + hi) >> 1; if (column[m] < t0) lo = m + 1; else hi = m; }
    const first = lo;
    hi = column.length;
    while (lo < hi) { const m = (lo + hi) >> 1; if (column[m] <= t1) lo = m + 1; else hi = m; }
    return [first, lo];
  };
})();
