/* Reads what harness/report/columns.py packed: base64, gzip, planes of bytes. */
"use strict";
(() => {
  const bytesOf = (text) => {
    if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
    const raw = atob(text), bytes = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
    return bytes;
  };
  LH.inflate = async (id) => {
    const element = document.getElementById(id), bytes = bytesOf(element.textContent);
    element.remove();
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  };
  LH.columns = async (name, layout) => {
    const raw = await LH.inflate(`block-${name}`), found = {};
    let at = 0;
    for (const { name: column, bytes, count } of layout) {
      const planes = [];
      for (let p = 0; p < bytes; p++, at += count) planes.push(raw.subarray(at, at + count));
      if (bytes === 1) { found[column] = planes[0]; continue; }
      const out = new (bytes === 2 ? Uint16Array : Uint32Array)(count);
      for (let p = 0; p < bytes; p++) {
        const plane = planes[p], shift = 8 * p;
        for (let i = 0; i < count; i++) out[i] |= plane[i] << shift;
      }
      found[column] = out;
    }
    return found;
  };
  /* Differences in units to times in ms. */
  LH.sums = (column, unit) => {
    const out = new Float64Array(column.length);
    let sum = 0;
    for (let i = 0; i < column.length; i++) { sum += column[i]; out[i] = sum * unit; }
    return out;
  };
  /* Times in ms that a column counts from other times. */
  LH.plus = (times, column, unit) => {
    const out = new Float64Array(times.length);
    for (let i = 0; i < out.length; i++) out[i] = times[i] + column[i] * unit;
    return out;
  };
})();
