"""Colors and CSS of notebook fragments, which the report page uses too. No selector is global."""

from __future__ import annotations

from pyhudi.api.notebook_html.html import Html, tag

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
FRAGMENT = """
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


def fragment(*inner: object) -> Html:
    """Return a notebook fragment with its own style."""
    return tag("div", tag("style", Html(FRAGMENT.replace("\n", ""))), *inner, class_="pyhudi")
