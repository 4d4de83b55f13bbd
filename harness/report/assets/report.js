/* Puts the page together: unpacks the data, wires buttons, keys and pointer, fills tooltips. */
"use strict";
(async () => {
  const $ = (id) => document.getElementById(id);
  const meta = JSON.parse($("meta").textContent), unit = meta.unit_ms;
  const [ops, holds, writes] = await Promise.all(["ops", "holds", "writes"].map((name) => LH.columns(name, meta.layouts[name])));
  ops.start = LH.sums(ops.start, unit);
  ops.end = LH.plus(ops.start, ops.last, unit);
  const granted = LH.sums(holds.granted, unit);
  holds.granted = granted;
  holds.asked = LH.plus(granted, holds.asked, -unit);
  for (const name of ["believed", "lease", "sure", "latest"]) holds[name] = LH.plus(granted, holds[name], unit);
  /* A hold without a known end is drawn up to its worker's next one: more would hide the others. */
  const nextOf = new Float64Array(256).fill(Infinity);
  for (let i = granted.length - 1; i >= 0; i--) {
    if (holds.flags[i] & 4) holds.latest[i] = Math.max(holds.sure[i], Math.min(holds.latest[i], nextOf[holds.row[i]]));
    nextOf[holds.row[i]] = granted[i];
  }
  holds.reach = new Float64Array(granted.length);
  holds.token = new Float64Array(granted.length);
  for (let i = 0; i < granted.length; i++) {
    holds.reach[i] = Math.max(holds.believed[i], holds.latest[i]);
    holds.token[i] = holds.high[i] * 4294967296 + holds.low[i] - 1;
  }
  writes.time = LH.sums(writes.time, unit);

  /* Rows of locks: those in trouble first, a few at most. */
  const bad = new Set(meta.overlaps.map((o) => o[4])), held = [...new Set(holds.key)];
  const shownKeys = held.sort((a, b) => bad.has(b) - bad.has(a) || a - b).slice(0, 8);
  const rowOfKey = new Map(shownKeys.map((k, place) => [k, place]));
  holds.keyRow = holds.key.map((k) => rowOfKey.get(k) ?? 65535);
  const placed = meta.anomalies.filter((one) => one.placed).sort((a, b) => a.end - b.end || a.number - b.number);
  placed.forEach((one, place) => { one.place = place; });
  for (const fault of meta.faults) fault.workers = fault.targets.map((target) => target.split("-")[0]);
  const density = new Array(400).fill(0), stale = [];
  for (let i = 0; i < ops.start.length; i++) density[Math.min(399, ops.start[i] / Math.max(meta.end_ms, unit) * 400 | 0)]++;
  for (let k = 0; k < writes.how.length && stale.length < 2000; k++) if (writes.how[k] === 2) stale.push(k);

  $("chart").hidden = $("tools").hidden = $("help").hidden = $("plots").hidden = false;
  const data = { meta, ops, holds, writes, shownKeys, placed, density, stale };
  const line = LH.makeTimeline(data), chart = $("chart"), lanes = $("lanes"), tip = $("tip");
  let plots = null;
  line.onView(() => plots?.follow());
  document.addEventListener("lh-theme", () => { line.theme(); plots?.build(); line.paint(); });
  new ResizeObserver(() => { line.later(); plots?.resize(); }).observe(chart);

  /* ---- words ---- */
  const ms = LH.ms, name = (row) => meta.rows[row] ?? "somebody";
  const outcomes = ["ok", "refused", "outcome unknown", "never answered"];
  const tell = (one) => {
    if (!one) { $("now").textContent = meta.anomalies.length ? "No anomaly has a place on the timeline." : "No anomalies."; return; }
    $("now").textContent = `Anomaly ${one.number} of ${meta.anomalies.length}, ${one.checker}, ${one.kind}: ${one.says}`;
  };
  let detail = null;
  const details = () => {
    const read = async () => {
      const [d, raw] = await Promise.all([LH.columns("detail", meta.layouts.detail), LH.inflate("block-names")]);
      d.event = LH.sums(d.event, 1);
      d.places = d.place ? new Map(Array.from(LH.sums(d.place, 1), (p, k) => [p, k])) : null;
      d.names = JSON.parse(new TextDecoder().decode(raw));
      return d;
    };
    detail = detail || read();
    return detail;
  };
  const opText = async (i) => {
    const text = [`${meta.functions[ops.kind[i] >> 2]} by ${name(ops.row[i])}: ${outcomes[ops.kind[i] & 3]}`,
      `${ms(ops.start[i])} to ${ms(ops.end[i])}, ${ms(ops.end[i] - ops.start[i])} long`];
    const d = await details(), k = d.places ? d.places.get(i) : i;
    if (k === undefined) return [...text, "more in history.jsonl"].join("\n");
    const word = (what) => d.names[what][d[what][k]];
    const more = [word("key") && `key ${word("key")}`, word("hold") && `hold ${word("hold")}`, `process ${word("process")}`, word("error")].filter(Boolean);
    const events = d.answer[k] ? `events ${d.event[k]}, ${d.event[k] + d.answer[k]}` : `event ${d.event[k]}`;
    return [...text, more.join(", "), events].join("\n");
  };
  const holdText = (i) => {
    const how = meta.modes ? (holds.flags[i] & line.READS ? " as a reader" : " as a writer") : meta.permits > 1 ? `, one of ${meta.permits} permits` : "";
    const lines = [`${name(holds.row[i])} and lock ${meta.keys[holds.key[i]] || ""}${how}${holds.token[i] >= 0 ? `, token ${holds.token[i]}` : ""}`,
      `asked ${ms(holds.asked[i])}, granted ${ms(holds.granted[i])}`];
    if (holds.flags[i] & line.BELIEVED) lines.push(`believed until ${ms(holds.believed[i])}`);
    if (holds.flags[i] & line.ENDLESS) lines.push("at the service: no known end");
    else if (holds.flags[i] & line.LEASED) {
      lines.push(`ended at the service between ${ms(holds.sure[i])} and ${ms(holds.latest[i])}`);
      if (holds.believed[i] > holds.latest[i]) lines.push(`believed ${ms(holds.believed[i] - holds.latest[i])} too long`);
    }
    return lines.join("\n");
  };
  const textOf = async (hit) => {
    if (hit.anomaly) return `Anomaly ${hit.anomaly.number}: ${hit.anomaly.says}`;
    if (hit.overlap) return `${name(hit.overlap[2])} and ${name(hit.overlap[3])} at once ${hit.overlap[5] ? "at the service" : "in their belief"}: ${ms(hit.overlap[0])} to ${ms(hit.overlap[1])}, ${ms(hit.overlap[1] - hit.overlap[0])}`;
    if (hit.write >= 0) return `write by ${name(writes.row[hit.write])} at the resource, ${ms(writes.time[hit.write])}: ${["accepted", "refused", "STALE, and accepted"][writes.how[hit.write]]}`;
    if (hit.fault) return `#${hit.fault.id} ${hit.fault.kind} on ${hit.fault.targets.join(", ")}\n${ms(hit.fault.start)} to ${ms(hit.fault.end)}\n${hit.fault.says}`;
    if (hit.hold >= 0) return holdText(hit.hold);
    if (hit.op >= 0) return opText(hit.op);
    return "";
  };

  /* ---- pointer ---- */
  let asked = 0, drag = null;
  const hideTip = () => { asked++; tip.hidden = true; };
  const at = (event) => { const box = lanes.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
  const hover = async (px, py) => {
    const mine = ++asked, hit = line.find(px, py), text = hit ? await textOf(hit) : "";
    if (mine !== asked) return;
    tip.hidden = !text;
    if (!text) return;
    tip.textContent = text;
    tip.style.left = `${Math.min(px + 14, chart.clientWidth - tip.offsetWidth - 6)}px`;
    tip.style.top = `${Math.max(4, Math.min(py + 16, chart.clientHeight - tip.offsetHeight - 6))}px`;
  };
  lanes.addEventListener("pointerdown", (event) => {
    const [px] = at(event);
    drag = { px, t0: line.view.t0, t1: line.view.t1, zoom: event.shiftKey };
    lanes.setPointerCapture(event.pointerId);
    chart.focus({ preventScroll: true });
    hideTip();
  });
  lanes.addEventListener("pointermove", (event) => {
    const [px, py] = at(event);
    if (!drag) { hover(px, py); return; }
    if (drag.zoom) { $("now").textContent = `Zoom to ${ms(line.timeAt(Math.min(px, drag.px)))} to ${ms(line.timeAt(Math.max(px, drag.px)))}`; return; }
    const by = (drag.px - px) / line.view.scale;
    line.show(drag.t0 + by, drag.t1 + by);
  });
  lanes.addEventListener("pointerup", (event) => {
    const [px] = at(event);
    if (drag?.zoom && Math.abs(px - drag.px) > 4) line.show(line.timeAt(Math.min(px, drag.px)), line.timeAt(Math.max(px, drag.px)));
    drag = null;
  });
  lanes.addEventListener("pointercancel", () => { drag = null; });
  lanes.addEventListener("pointerleave", hideTip);
  lanes.addEventListener("dblclick", (event) => line.zoom(.4, line.timeAt(at(event)[0])));
  lanes.addEventListener("wheel", (event) => {
    const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
    if (sideways) { event.preventDefault(); line.pan(event.deltaX / line.view.width); return; }
    if (!event.ctrlKey && document.activeElement !== chart) return;
    event.preventDefault();
    line.zoom(Math.exp(Math.max(-120, Math.min(120, event.deltaY)) / 300), line.timeAt(at(event)[0]));
  }, { passive: false });
  const travel = (event) => {
    if (event.type === "pointermove" && !event.buttons) return;
    const px = event.clientX - $("overview").getBoundingClientRect().left, half = (line.view.t1 - line.view.t0) / 2;
    const t = (px - line.LEFT) / line.view.width * line.end;
    line.show(t - half, t + half);
  };
  $("overview").addEventListener("pointerdown", travel);
  $("overview").addEventListener("pointermove", travel);

  /* ---- buttons and keys ---- */
  const act = {
    next: () => tell(line.step(1)), previous: () => tell(line.step(-1)),
    in: () => line.zoom(.6), out: () => line.zoom(1 / .6), left: () => line.pan(-.25), right: () => line.pan(.25),
    all: () => line.show(0, line.end),
  };
  for (const button of document.querySelectorAll("[data-do]")) button.addEventListener("click", () => act[button.dataset.do]());
  for (const button of document.querySelectorAll("[data-jump]")) {
    const one = placed.find((a) => a.number === +button.dataset.jump);
    if (!one) continue;
    button.hidden = button.disabled = false;
    button.addEventListener("click", () => { tell(line.focus(one.place)); chart.focus(); $("timeline").scrollIntoView(); });
  }
  const anywhere = { n: act.next, p: act.previous };
  const keys = { ArrowLeft: act.left, ArrowRight: act.right, "+": act.in, "=": act.in, "-": act.out, 0: act.all, Home: act.all };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(input|select|textarea)$/i.test(event.target.tagName)) return;
    const does = anywhere[event.key] || (document.activeElement === chart ? keys[event.key] : null);
    if (does) { event.preventDefault(); does(); hideTip(); }
  });
  if (held.length > 1) {
    $("keybox").hidden = false;
    const add = (text, value) => { const option = document.createElement("option"); option.textContent = text; option.value = value; $("key").append(option); };
    add("all", -1);
    for (const k of shownKeys) add(meta.keys[k] || "(none)", k);
    $("key").addEventListener("change", () => line.setKey(+$("key").value));
  }
  if ($("copy") && navigator.clipboard) {
    $("copy").hidden = false;
    $("copy").addEventListener("click", async () => { await navigator.clipboard.writeText($("replay").textContent.trim()); $("copy").textContent = "Copied"; });
  }
  line.paint();
  $("now").textContent = meta.anomalies.length ? `${meta.anomalies.length} ${meta.anomalies.length > 1 ? "anomalies" : "anomaly"}. Press n for the next.` : "No anomalies.";
  LH.page = { data, line, hover };
  LH.readyMs = performance.now();
  document.documentElement.dataset.ready = "yes";
  /* The plots stand further down: nobody should wait for them. */
  const soon = window.requestIdleCallback ?? ((work) => setTimeout(work));
  soon(() => {
    plots = LH.makePlots(data, line);
    plots.follow();
    document.documentElement.dataset.plotted = "yes";
  });
})();
