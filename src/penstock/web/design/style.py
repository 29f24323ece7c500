"""The CSS of every page. Sizes come from the scale, colours from the theme."""

from __future__ import annotations

from penstock.web.design.colours import heat_css, theme_css
from penstock.web.design.scale import FONT, MONO, NARROW, scale_css

_TEXT = f"""
body {{ font-size: var(--t2); line-height: 1.45; }}
.title {{ font-size: var(--t4); font-weight: 600; line-height: 1.3; }}
.title.wrap {{ display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 3;
  overflow: hidden; }}
.subtitle {{ font-size: var(--t3); font-weight: 600; }}
.small {{ font-size: var(--t1); }}
.muted {{ color: var(--muted); }}
.warning {{ color: var(--warning); }}
.mono, .mono td {{ font-family: {MONO}; }}
.wrap {{ white-space: pre-wrap; overflow-wrap: anywhere; }}
.unseen {{ position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%);
  white-space: nowrap; }}
a:not(.q-btn) {{ color: var(--link); text-decoration: underline; text-underline-offset: 2px; }}
a:focus-visible, button:focus-visible, [tabindex]:focus-visible {{
  outline: 2px solid var(--focus); outline-offset: 1px; }}
"""

_FRAME = """
.nicegui-content { padding: var(--s4); max-width: 96rem; margin: 0 auto; align-items: stretch;
  gap: var(--s4); }
.bar { background: var(--card); color: var(--text); border-bottom: 1px solid var(--hairline);
  box-shadow: none; padding: var(--s2) var(--s4); gap: var(--s2); min-height: 48px; }
.bar .q-field__control, .bar .q-field__native, .bar .q-field__append { min-height: 32px; height: 32px; }
.brand { white-space: nowrap; overflow: hidden; min-width: 0; font-size: var(--t3); font-weight: 700;
  letter-spacing: .02em; }
.chip { font-size: var(--t1); padding: 1px var(--s2); border-radius: 99px; white-space: nowrap;
  margin-right: var(--s2); }
.side { background: var(--card); border-right: 1px solid var(--hairline); padding: var(--s3) var(--s2); }
.side nav, .tabs { display: flex; }
.side nav { flex-direction: column; gap: var(--s1); width: 100%; }
.side a.nav { display: flex; align-items: center; gap: var(--s3); padding: var(--s2) var(--s3);
  border-radius: 6px; color: var(--text); text-decoration: none; font-size: var(--t2); }
.side a.nav .q-icon { font-size: var(--t4); color: var(--muted); }
.side a.nav:hover { background: var(--ground); }
.side a.nav[aria-current=page], .side a.nav[aria-current=page] .q-icon { background: var(--raised);
  color: var(--link); font-weight: 600; }
.tabs { gap: var(--s1); border-bottom: 1px solid var(--hairline); }
.tabs a.nav { display: flex; align-items: center; gap: var(--s2); padding: var(--s2) var(--s3);
  color: var(--muted); text-decoration: none; border-bottom: 2px solid transparent; margin-bottom: -1px; }
.tabs a.nav .q-icon { font-size: var(--t3); }
.tabs a.nav[aria-current=page] { color: var(--link); border-color: var(--link); font-weight: 600; }
.error { padding: var(--s2) var(--s4); border-radius: 6px; width: 100%; }
.view { display: flex; flex-direction: column; gap: var(--s4); width: 100%; min-width: 0; }
.view:focus { outline: none; }
.tools { display: flex; flex-wrap: wrap; align-items: center; gap: var(--s2); width: 100%; }
.card { background: var(--card); border: 1px solid var(--hairline); border-radius: 8px;
  padding: var(--s3) var(--s4); min-width: 0; width: 100%; }
.halves { display: grid; gap: var(--s4); grid-template-columns:
  repeat(auto-fit, minmax(min(100%, 26rem), 1fr));  width: 100%; align-items: start; }
.thirds { display: grid; gap: var(--s4); grid-template-columns:
  repeat(auto-fit, minmax(min(100%, 19rem), 1fr)); width: 100%; align-items: start; }
.part { display: flex; flex-direction: column; gap: var(--s2); min-width: 0; width: 100%; }
.empty { display: flex; align-items: center; gap: var(--s3); color: var(--muted); padding: var(--s4); }
.empty .q-icon { font-size: var(--t5); }
.asking { min-width: min(20rem, 90vw); } .q-dialog .asking.full-width { max-width: 48rem; }
.asking .q-btn { min-width: 26px; min-height: 26px; }
.asking .q-btn-toggle .q-btn[aria-pressed=true] { text-decoration: underline; text-underline-offset: 4px; }
.keys { display: grid; grid-template-columns: auto 1fr; gap: var(--s2) var(--s4); align-items: baseline;
  margin: 0; }
.keys dd { margin: 0; }
kbd { font-family: inherit; font-size: var(--t1); border: 1px solid var(--edge); border-radius: 4px;
  padding: 1px var(--s2); }
.figures { display: grid; gap: var(--s3); grid-template-columns: repeat(4, minmax(0, 1fr)); width: 100%; }
.figure { display: flex; flex-direction: column; gap: var(--s1); }
.figure .value { font-size: var(--t5); font-weight: 600; line-height: 1.2;
  font-variant-numeric: tabular-nums; }
.figure svg { width: 100%; height: 32px; display: block; color: var(--spark); }
.time-slider { display: grid; grid-template-columns: auto minmax(8rem, 1fr) auto; gap: var(--s4);
  align-items: center; width: 100%; padding-right: var(--s2); }
.share { display: flex; height: 12px; border-radius: 6px; overflow: hidden; width: 100%;
  background: var(--spark); }
.share-gone { background: var(--warning); }
.flows { display: flex; flex-direction: column; gap: var(--s4); width: 100%; }
.loading::after { content: ""; display: block; height: 3px; border-radius: 2px; background: var(--spark);
  width: 30%; animation: loading 1.2s ease-in-out infinite alternate; }
@keyframes loading { to { margin-left: 70%; } }
@media (prefers-reduced-motion: reduce) { .loading::after { animation: none; } }
"""

_TABLE = """
.table-box { background: var(--card); border: 1px solid var(--hairline); border-radius: 8px;
  overflow-x: auto; max-width: 100%; }
.table { width: 100%; border-collapse: collapse; font-size: var(--t2); }
.table td, .table th { padding: var(--s1) var(--s3); border-top: 1px solid var(--hairline);
  font-variant-numeric: tabular-nums; vertical-align: middle; white-space: nowrap; }
.table td.wrap { white-space: pre-wrap; }
.table td:not(.wrap) { max-width: 26rem; overflow: clip; overflow-clip-margin: var(--s1);
  text-overflow: ellipsis; }
.table th { border-top: 0; font-weight: 600; font-size: var(--t1); color: var(--muted); }
.table tbody tr:hover, .table tr.chosen { background: var(--ground); }
.table .choose { width: 1px; text-align: left; padding-right: 0; }
.table .sort, .table .open { background: none; border: 0; font: inherit; color: inherit; cursor: pointer;
  padding: 0; text-decoration: underline dotted; text-underline-offset: 3px; min-height: 24px; }
.table .sort { white-space: nowrap; }
.table .open { color: var(--link); text-decoration: underline; overflow-wrap: anywhere; text-align: left; }
.table th[aria-sort] .sort { color: var(--text); }
.spark { display: block; color: var(--spark); }
.level { display: inline-flex; align-items: baseline; gap: var(--s2); font-weight: 600; }
.level::before { content: ""; width: 9px; height: 9px; flex: none; background: currentColor; }
.level.bad { color: var(--gone); }
.level.warn { color: var(--warning); }
.level.good { color: var(--fine); }
.level.warn::before { clip-path: polygon(50% 0, 100% 100%, 0 100%); }
.level.good::before { border-radius: 50%; }
.heat { display: block; padding: 1px var(--s2); border-radius: 4px; }
.tree { padding: var(--s2) var(--s1); font-size: var(--t2); overflow-wrap: anywhere; }
.tree details > :not(summary), .tree details > details { margin-left: var(--s4); }
.tree summary { display: list-item; cursor: pointer; min-height: 24px; color: var(--muted); }
.tree .name { color: var(--link); }
.selection { color: var(--muted); padding: var(--s1) 0; }
"""

# A flow is nested lists side by side. An edge is a line with a text above it. The vertical line that joins
# the branches of a list is drawn piece by piece at the left of each branch.
_FLOW = """
.flow { overflow-x: auto; }
.flow-row { display: flex; align-items: center; }
.flow-list { list-style: none; margin: 0; padding: 0; display: flex; flex-direction: column; gap: var(--s2); }
.flow-list.branches { flex: 1 1 auto; gap: 0; position: relative; padding-left: var(--s5); }
.flow-list.branches::before { content: ""; position: absolute; left: 0; width: var(--s5);
  top: calc(50% - 1px); border-top: 2px solid var(--edge); }
.branch { position: relative; padding: var(--s1) 0; }
.branch::before { content: ""; position: absolute; left: 0; top: 0; bottom: 0;
  border-left: 2px solid var(--edge); }
.branch:first-child::before { top: calc(50% - 1px); }
.branch:last-child::before { bottom: calc(50% - 1px); }
.branch:only-child::before { display: none; }
.edge { flex: 1 1 5rem; min-width: 5rem; position: relative; text-align: center; font-size: var(--t1);
  color: var(--muted); font-variant-numeric: tabular-nums; white-space: nowrap; }
.edge span { display: block; padding: 0 var(--s3) 0 var(--s2); transform: translateY(-60%); }
.edge::before { content: ""; position: absolute; left: 0; right: 6px; top: calc(50% - 1px);
  border-top: 2px solid var(--edge); }
.edge::after { content: ""; position: absolute; right: 0; top: calc(50% - 5px); border: 5px solid transparent;
  border-left: 8px solid var(--edge); border-right: 0; }
.node { border: 1px solid var(--edge); border-radius: 8px; padding: var(--s2) var(--s3); min-width: 0;
  background: var(--ground); overflow-wrap: anywhere; }
.node > :first-child { font-weight: 600; }
.node.source { width: 10rem; }
.node.query { width: 15rem; flex: none; background: var(--raised); }
.node.output { width: 13rem; flex: none; display: flex; flex-direction: column; }
.node.output > :nth-child(2) { font-size: var(--t1); }
.node dl { display: flex; flex-wrap: wrap; gap: 0 var(--s3); margin: var(--s1) 0 0; font-size: var(--t1);
  overflow-wrap: normal; }
.node dl > div { display: flex; gap: var(--s1); white-space: nowrap; }
.node dt { color: var(--muted); }
.node dd { margin: 0; font-variant-numeric: tabular-nums; }
"""

# On a narrow screen a row is a card: its first cell is the title, the others have their heading above them.
_NARROW = f"""
@media (max-width: {NARROW}px) {{
  .nicegui-content {{ padding: var(--s3); }}
  .bar {{ padding: var(--s1) var(--s2); }}
  .card {{ padding: var(--s3); }}
  .table, .table tbody, .table thead {{ display: block; }}
  .table thead tr {{ display: flex; flex-wrap: wrap; gap: 0 var(--s3); padding: var(--s1) var(--s3);
    align-items: center; }}
  .table th {{ padding: 0; border: 0; }}
  .table th:not(.sorts):not(.choose) {{ position: absolute; width: 1px; height: 1px; overflow: hidden;
    clip-path: inset(50%); }}
  .table tbody tr {{ display: grid; grid-template-columns: repeat(3, minmax(0, 1fr));
    gap: var(--s1) var(--s3); padding: var(--s2) var(--s3); border-top: 1px solid var(--hairline);
    position: relative; }}
  .table tbody tr:first-child {{ border-top: 0; }}
  .table td {{ padding: 0; border: 0; text-align: left; white-space: normal; overflow-wrap: anywhere; }}
  .table td:not(.wrap) {{ max-width: none; display: -webkit-box; -webkit-box-orient: vertical;
    -webkit-line-clamp: 4; }}
  .table td.half {{ grid-column: span 2; }}
  .table td.first, .table td.wrap, .table td.note {{ grid-column: 1 / -1; }}
  .table td.first {{ font-size: var(--t2); font-weight: 600; }}
  .table td:not(.first):not(.choose):not(.note):not(.wrap:not(.half))::before {{
    content: attr(data-label); display: block;
    color: var(--muted); font: 400 var(--t1) / 1.2 {FONT}; }}
  .table td.wrap > .clamp {{ display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 3;
    overflow: hidden; }}
  .table th.choose {{ display: flex; align-items: center; gap: var(--s2); }}
  .table th.choose::after {{ content: "all"; font-weight: 400; }}
  .table td.choose {{ position: absolute; right: var(--s3); top: var(--s2); width: auto; }}
  .table tr.chooses td.first {{ padding-right: var(--s6); }}
  .spark {{ width: 100%; }}
  .figures {{ grid-template-columns: repeat(2, minmax(0, 1fr)); }}
  .tools .q-field {{ flex: 1 1 100%; }}
  .q-btn {{ min-height: 36px; }}
  .time-slider {{ grid-template-columns: 1fr 1fr; gap: 0 var(--s2); padding: 0 var(--s2);
    overflow-x: clip; }}
  .time-slider > .q-slider {{ grid-column: 1 / -1; grid-row: 1; }}
  .flow-row {{ flex-direction: column; align-items: stretch; }}
  .flow-list.branches::before {{ display: none; }}
  .flow-list.branches {{ padding-left: 0; }}
  .branch {{ padding: 0 0 var(--s1) var(--s5); }}
  .branch::before, .branch:first-child::before, .branch:only-child::before {{ display: block; left: 7px;
    top: 0; }}
  .branch:last-child::before {{ bottom: auto; height: 16px; }}
  .tabs {{ gap: 0; }}
  .tabs a.nav {{ padding: var(--s2); }}
  .tabs a.nav .q-icon {{ display: none; }}
  .edge {{ flex: none; height: 32px; }}
  .edge span {{ transform: none; line-height: 32px; text-align: left; padding-left: var(--s4); }}
  .edge::before {{ left: -17px; right: auto; width: 24px; }}
  .edge::after {{ left: 4px; right: auto; }}
  .node.source, .node.query, .node.output {{ width: auto; }}
}}
"""


def page_css() -> str:
    """The CSS of every page."""
    return theme_css() + heat_css() + scale_css() + _TEXT + _FRAME + _TABLE + _FLOW + _NARROW
