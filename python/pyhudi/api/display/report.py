"""Builds the page of `HudiTable.report`, and writes it."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

from pyhudi.api.display import report_sections
from pyhudi.api.display.commit_charts import growth
from pyhudi.api.display.html import Html, escape, facts, join, tag
from pyhudi.api.display.report_data import Survey, collect_report_data
from pyhudi.api.display.style import page_style
from pyhudi.api.display.table_html import badges, data_columns, schema_grid, table_facts
from pyhudi.clock import format_instant
from pyhudi.config import argument_checks as arg
from pyhudi.config.formatting import instant_text
from pyhudi.errors import ConfigError, StorageError
from pyhudi.table.table_snapshot import TableSnapshot

_OPEN_MOST = 12

# A click on a header sorts its table; the rest of the page works without scripts.
_SORTING = """
document.querySelectorAll("table.sortable").forEach(function(table){
table.querySelectorAll("th").forEach(function(head,column){
head.addEventListener("click",function(){
var body=table.tBodies[0],down=head.dataset.down!=="1";head.dataset.down=down?"1":"0";
function key(row){var cell=row.cells[column],value=cell.dataset.v;
return value===undefined?cell.textContent:value}
Array.from(body.rows).sort(function(a,b){var x=key(a),y=key(b),n=Number(x)-Number(y);
var order=isNaN(n)||x===""||y===""?String(x).localeCompare(String(y)):n;
return down?-order:order}).forEach(function(row){body.appendChild(row)})})})});
"""


def write_report(table: TableSnapshot, to: Any) -> str:
    """Write the page about a table; see `HudiTable.report`."""
    is_file = hasattr(to, "write")
    if not is_file:
        arg.location("to", to)
    text = report_html(table)
    if is_file:
        binary = isinstance(to, (io.RawIOBase, io.BufferedIOBase)) or "b" in getattr(to, "mode", "")
        to.write(text.encode() if binary else text)
        return text
    path: str = os.fspath(to)
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        if isinstance(error, (FileNotFoundError, IsADirectoryError, NotADirectoryError)):
            raise ConfigError(f"to is {path!r}: {error.strerror}") from error
        raise StorageError(f"{path}: {error.strerror}") from error
    return path


def report_html(table: TableSnapshot) -> str:
    """Return the page as text."""
    survey = collect_report_data(table)
    name = table.config.name
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", f"{name}: Hudi table"),
        page_style(),
    )
    body = tag("body", tag("div", *_parts(survey), class_="pyhudi page"), _script())
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


def _parts(survey: Survey) -> list[Html]:
    table = survey.table
    columns = data_columns(table)
    title = tag("div", tag("h1", table.config.name), badges(table), class_="title")
    schema = tag(
        "details",
        tag("summary", f"{len(columns):,} columns"),
        schema_grid(table, columns),
        open="" if len(columns) <= _OPEN_MOST else None,
    )
    about = tag("div", facts(table_facts(table)))
    problems = [tag("p", text, class_="problem") for text in survey.problems]
    return [
        title,
        tag("p", tag("code", table.storage.uri), class_="where"),
        *([report_sections.section("What could not be shown", *problems)] if problems else []),
        report_sections.tiles(survey),
        report_sections.advice(survey),
        report_sections.section("Table", tag("div", about, tag("div", schema), class_="two")),
        report_sections.timeline(survey),
        report_sections.storage(survey),
        growth(survey),
        report_sections.indexes(survey),
        report_sections.history(survey),
        _footer(table),
    ]


def _footer(table: TableSnapshot) -> Html:
    from pyhudi._native import __version__  # noqa: PLC0415 - only for this line

    now = instant_text(format_instant(table.clock.now_ms(), table.config.timezone))[:19]
    return tag("footer", f"written by pyhudi {__version__} at {now}, from timeline and listings")


def _script() -> Html:
    return join([tag("script", Html(_SORTING)), escape("")])
