/* Light, dark, or what the system says; remembered where the browser lets us. */
"use strict";
window.LH = window.LH || {};
(() => {
  const root = document.documentElement, dark = matchMedia("(prefers-color-scheme: dark)");
  const button = document.getElementById("theme");
  const isDark = () => (root.dataset.theme || (dark.matches ? "dark" : "light")) === "dark";
  const tell = () => {
    if (button) button.textContent = isDark() ? "Light" : "Dark";
    document.dispatchEvent(new Event("lh-theme"));
  };
  try { const kept = localStorage.getItem("lockhavoc-theme"); if (kept) root.dataset.theme = kept; } catch { /* private mode */ }
  if (button) {
    button.hidden = false;
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      try { localStorage.setItem("lockhavoc-theme", root.dataset.theme); } catch { /* private mode */ }
      tell();
    });
  }
  dark.addEventListener("change", tell);
  // Canvases are painted, so printing needs them in the light colours.
  let before;
  addEventListener("beforeprint", () => { before = root.dataset.theme; root.dataset.theme = "light"; tell(); });
  addEventListener("afterprint", () => {
    if (before) root.dataset.theme = before; else delete root.dataset.theme;
    tell();
  });
  /* A canvas needs the colour that a variable comes to in this theme. */
  const probe = document.createElement("span");
  probe.hidden = true;
  document.body.append(probe);
  LH.colour = (name) => { probe.style.color = `var(--${name})`; return getComputedStyle(probe).color; };
  LH.isDark = isDark;
  tell();
})();
