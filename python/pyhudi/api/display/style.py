"""Colors and CSS of notebook fragments and of the report page. No selector is global."""

from __future__ import annotations

from pyhudi.api.display.html import Html, join, tag

ACTION_COLORS = {
    "commit": "#3b82f6",
    "deltacommit": "#0ea5b7",
    "replacecommit": "#8b5cf6",
    "clustering": "#d946ef",
    "compaction": "#f08c00",
    "logcompaction": "#c9a400",
    "indexing": "#64748b",
    "clean": "#65a30d",
    "savepoint": "#0d9f6e",
    "rollback": "#e5484d",
    "restore": "#b4232c",
}
"""Colors by what an instant did, in the order of the picture; readable on light and dark ground."""

BASE, LOG, REST = "#4f83e3", "#f0a232", "#8b95a5"
"""Colors of base files, of log files, and of everything that is not drawn separately."""
INSERTED, UPDATED, DELETED, SERVICE = "#2fa66b", "#4f83e3", "#e5686c", "#9a8fd1"

# The background is the notebook's, light or dark: translucent greys, and its own text color.
_FRAGMENT = """
.pyhudi{--line:rgba(127,127,127,.28);--soft:rgba(127,127,127,.09);--muted:rgba(127,127,127,.95);
--ground:transparent;font:13px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;
max-width:1180px;color:inherit}
.pyhudi .head{font-size:15px;margin:0 0 8px}
.pyhudi .head b{font-weight:650;margin-right:4px}
.pyhudi .badge{display:inline-block;padding:0 8px;margin-right:5px;border:1px solid var(--line);
border-radius:9px;font-size:11.5px;line-height:18px;background:var(--soft);white-space:nowrap}
.pyhudi .badge.good{border-color:#2fa66b;color:#2fa66b}
.pyhudi .badge.bad{border-color:#e5484d;color:#e5484d}
.pyhudi .badge.warm{border-color:#d98a10;color:#d98a10}
.pyhudi table{border-collapse:collapse;margin:0 0 8px;font-size:12.5px;border:0;color:inherit;
background:transparent;table-layout:auto}
.pyhudi th,.pyhudi td{text-align:left;padding:3px 12px 3px 0;border:0;vertical-align:top;
background:transparent;max-width:420px;overflow-wrap:break-word;white-space:normal}
.pyhudi tr{background:transparent;border:0}
.pyhudi .facts th{color:var(--muted);font-weight:400;padding-right:18px;white-space:nowrap}
.pyhudi .facts table{margin:0}
.pyhudi .grid th{font-weight:600;color:var(--muted);border-bottom:1px solid var(--line);
padding:4px 14px 4px 0;white-space:nowrap}
.pyhudi .grid td{border-bottom:1px solid var(--soft);padding:4px 14px 4px 0;min-width:30px}
.pyhudi .grid .num{text-align:right;font-variant-numeric:tabular-nums}
.pyhudi .scroll{overflow-x:auto}
.pyhudi .none{color:var(--muted);font-style:italic}
.pyhudi .note{color:var(--muted);font-size:12px;margin:4px 0 8px}
.pyhudi code{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;background:transparent;
color:inherit;padding:0}
.pyhudi details>summary{cursor:pointer;color:var(--muted);margin:4px 0}
.pyhudi svg{display:block;max-width:100%;height:auto;overflow:visible}
.pyhudi svg text{fill:currentColor;font:11px system-ui,-apple-system,"Segoe UI",sans-serif}
.pyhudi svg .dim{fill-opacity:.62}
.pyhudi svg .rule{stroke:currentColor;stroke-opacity:.14;fill:none}
.pyhudi svg .cell{stroke:var(--ground);stroke-width:1}
.pyhudi svg .mark:hover,.pyhudi svg .cell:hover{opacity:.65}
.pyhudi .key{display:inline-flex;align-items:center;gap:5px;margin-right:14px;font-size:12px}
.pyhudi .key i{width:11px;height:11px;border-radius:3px;display:inline-block}
"""

_PAGE = """
:root{color-scheme:light dark}
body{margin:0;background:#f4f5f8;color:#1c2330}
.pyhudi.page{--line:#dfe3ea;--soft:#f1f3f7;--muted:#667085;--ground:#fff;--card:#fff;
--shade:0 1px 2px rgba(16,24,40,.06);max-width:1200px;margin:0 auto;padding:28px 24px 48px}
@media (prefers-color-scheme:dark){
body{background:#10141b;color:#e4e8ef}
.pyhudi.page{--line:#2c3442;--soft:#202734;--muted:#98a3b5;--ground:#181e28;--card:#181e28;
--shade:none}}
.page h1{font-size:27px;line-height:1.25;margin:0 10px 0 0;font-weight:680;letter-spacing:-.01em;
overflow-wrap:anywhere;display:inline}
.page .title{margin:0 0 4px}
.page .title .badge{position:relative;top:-4px}
.page .where{color:var(--muted);margin:0 0 18px;overflow-wrap:anywhere}
.page h2{font-size:16px;margin:0 0 10px;font-weight:640}
.page h3{font-size:13px;margin:0 0 6px;font-weight:600;color:var(--muted)}
.page section{background:var(--card);border:1px solid var(--line);border-radius:12px;
box-shadow:var(--shade);padding:18px 20px;margin:0 0 16px}
.page .tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:12px;
margin:0 0 16px}
.page .tile{background:var(--card);border:1px solid var(--line);border-radius:12px;
box-shadow:var(--shade);padding:12px 16px}
.page .tile b{display:block;font-size:21px;line-height:1.35;font-weight:650;
font-variant-numeric:tabular-nums;white-space:nowrap}
.page .tile span{color:var(--muted);font-size:12px}
.page .tile small{display:block;color:var(--muted);font-size:11.5px;margin-top:1px}
.page .two{display:grid;grid-template-columns:repeat(auto-fit,minmax(420px,1fr));gap:22px}
.page .two>div{min-width:0}
.page .two{margin:14px 0}
.page .two+.note{margin-bottom:0}
.page .named{display:flex;flex-wrap:wrap;justify-content:space-between;align-items:baseline}
.page .named .key:last-child{margin-right:0}
.page details[open]{max-width:560px}
.page .advice{display:flex;gap:12px;align-items:baseline;padding:9px 0;
border-top:1px solid var(--line)}
.page .advice:first-of-type{border-top:0;padding-top:0}
.page .advice .badge{min-width:58px;text-align:center;margin:0}
.page .advice p{margin:0;flex:1}
.page .advice code{color:var(--muted)}
.page .problem{border-left:3px solid #e5484d;padding:6px 12px;margin:0 0 10px;
background:var(--soft);border-radius:0 6px 6px 0;overflow-wrap:anywhere}
.page .grid{width:100%;margin:0}
.page .scroll{max-height:460px;overflow:auto;margin-bottom:4px}
.page .grid thead th{position:sticky;top:0;background:var(--card)}
.page .sortable th{cursor:pointer}
.page .sortable th:hover{color:inherit}
.page .share{display:inline-block;width:90px;height:8px;border-radius:4px;background:var(--soft);
overflow:hidden;vertical-align:middle;margin-right:8px;border:1px solid var(--line)}
.page .share i{display:block;height:100%}
.page .views{float:right;font-size:12px;color:var(--muted)}
.page .views label{margin-left:12px;cursor:pointer}
.page .views input{vertical-align:-2px;margin:0 4px 0 0}
.page section:has(#by-order:checked) .by-time,
.page section:has(#by-time:checked) .by-order{display:none}
.page footer{color:var(--muted);font-size:12px;text-align:center;margin-top:22px}
@media (max-width:900px){.page .two{grid-template-columns:1fr}}
@media print{body{background:#fff}.page section,.page .tile{break-inside:avoid;box-shadow:none}
.page .scroll{max-height:none}}
"""


def fragment(*inner: object) -> Html:
    """Return a notebook fragment with its own style."""
    return tag("div", tag("style", Html(_minify(_FRAGMENT))), *inner, class_="pyhudi")


def page_style() -> Html:
    """Return the style of the report page."""
    return tag("style", Html(_minify(_FRAGMENT + _PAGE)))


def key(*entries: tuple[str, str]) -> Html:
    """Return a legend. entries: pairs of a color and its meaning."""
    items = [
        tag("span", tag("i", style=f"background:{color}"), name, class_="key")
        for color, name in entries
    ]
    return tag("div", join(items))


def _minify(css: str) -> str:
    return css.replace("\n", "")
