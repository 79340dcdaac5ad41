"""How pages look, and how they stay up to date."""

STYLE = """
:root { color-scheme: light dark; --page: #fff; --text: #1c1e21; --faint: #667;
  --edge: #dde1e6; --soft: #f4f6f8; --c0: #1668b8; --c1: #c2571a;
  --running: #1668b8; --finished: #2c7a3f; --failed: #b3261e; --interrupted: #8a5a00;
  --unsaved: #8a5a00; }
@media (prefers-color-scheme: dark) { :root { --page: #15181c; --text: #e4e7eb;
  --faint: #9aa4b0; --edge: #2e343c; --soft: #1d2228; --c0: #6cb2f5; --c1: #f0985c;
  --running: #6cb2f5; --finished: #76c98a; --failed: #ff8a80; --interrupted: #e3b341;
  --unsaved: #e3b341; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text);
  font: 15px/1.45 system-ui, sans-serif; }
main, #gone { max-width: 1180px; margin: 0 auto; padding: 16px 20px; }
h1 { font-size: 1.35rem; margin: 8px 0; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 24px 0 8px; }
code { font: 0.9em ui-monospace, monospace; overflow-wrap: anywhere; }
a { color: var(--c0); text-decoration: none; } a:hover { text-decoration: underline; }
small, nav, .none, .when, dt { color: var(--faint); }
table { width: 100%; border-collapse: collapse; margin-top: 12px; }
th { text-align: left; font-weight: 600; color: var(--faint); font-size: 0.85rem; }
th, td { padding: 7px 10px 7px 0; border-bottom: 1px solid var(--edge);
  vertical-align: middle; }
th:nth-child(4), th:nth-child(5), .number { text-align: right;
  font-variant-numeric: tabular-nums; white-space: nowrap; }
td.number, th:nth-child(4), th:nth-child(5) { padding-right: 18px; }
td.name { overflow-wrap: anywhere; min-width: 12ch; } .when { white-space: nowrap; }
td.progress { white-space: nowrap; } td.progress small { margin-left: 8px; }
progress { width: 90px; height: 8px; accent-color: var(--c0); vertical-align: middle; }
main > progress { width: 100%; max-width: 420px; margin-right: 10px; }
.state { color: var(--faint); font-weight: 600; }
.running { color: var(--running); } .finished { color: var(--finished); }
.stopped { color: var(--finished); } .failed { color: var(--failed); }
.interrupted { color: var(--interrupted); } .unsaved { color: var(--unsaved); }
dl { display: flex; flex-wrap: wrap; gap: 8px 28px; margin: 12px 0; }
dt { font-size: 0.85rem; } dd { margin: 0; font-variant-numeric: tabular-nums; }
.charts { display: grid; gap: 18px;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 460px), 1fr)); }
figure { margin: 0; padding: 12px 14px; background: var(--soft); border-radius: 8px;
  min-width: 0; }
figcaption { font-weight: 600; margin-bottom: 6px; } figcaption b { float: right; }
.key { font-weight: 400; margin-left: 12px; color: var(--faint); }
.key::before { content: ""; display: inline-block; width: 14px; height: 3px;
  margin-right: 5px; vertical-align: middle; background: var(--c0); }
.key.c1::before { background: var(--c1); }
svg { display: block; width: 100%; height: auto; }
svg.spark { width: 120px; height: 28px; }
svg text { fill: var(--faint); font: 12px system-ui, sans-serif; }
.grid { stroke: var(--edge); stroke-width: 1; }
polyline { fill: none; stroke-width: 2; stroke-linejoin: round; }
.spark polyline { stroke-width: 1.5; }
polyline.c0 { stroke: var(--c0); } polyline.c1 { stroke: var(--c1); }
circle.c0 { fill: var(--c0); } circle.c1 { fill: var(--c1); }
details { border-bottom: 1px solid var(--edge); padding: 6px 0; }
details p { margin: 6px 0 6px 18px; } summary { cursor: pointer; }
#gone { color: var(--failed); }
@media (max-width: 760px) { thead { display: none; }
  tr { display: grid; grid-template-columns: 1fr 9.5em; gap: 2px 12px; padding: 10px 0;
    border-bottom: 1px solid var(--edge); }
  td { border: 0; padding: 0; } td.number { padding: 0; text-align: left; }
  td.number::before { content: "evaluation "; color: var(--faint); }
  td.best::before { content: "best "; }
  td.line { grid-row: 3; grid-column: 1; } td.when { grid-column: 2; } }
"""

SCRIPT = """
setInterval(async () => {
  try {
    const answer = await fetch(location.href, {cache: "no-store"});
    const text = await answer.text();
    const main = text.slice(text.indexOf("<main>"), text.indexOf("</main>"));
    const page = new DOMParser().parseFromString(main, "text/html");
    const open = [...document.querySelectorAll("details[open] code")];
    const names = new Set(open.map(code => code.textContent));
    for (const each of page.querySelectorAll("details"))
      each.open = names.has(each.querySelector("code").textContent);
    document.querySelector("main").replaceWith(page.querySelector("main"));
    document.getElementById("gone").hidden = true;
  } catch { document.getElementById("gone").hidden = false; }
}, 3000);
"""
