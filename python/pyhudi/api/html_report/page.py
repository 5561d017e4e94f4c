"""Builds the page of `HudiTable.report`, and writes it."""

from __future__ import annotations

import io
import os
from operator import attrgetter
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from pyhudi.admin.health import REBUILD
from pyhudi.api.html_report import charts
from pyhudi.api.html_report.charts import (
    HEIGHT,
    WIDTH,
    partition_name,
    partitions_of,
    storage_map,
)
from pyhudi.api.html_report.data import ReportData, collect_report_data
from pyhudi.api.notebook_html import style
from pyhudi.api.notebook_html.commit_summary import MAX_COMMITS, kind_of
from pyhudi.api.notebook_html.html import Html, escape, property_grid, value_text
from pyhudi.api.notebook_html.table_html import badges, data_columns, schema_grid, table_properties
from pyhudi.api.notebook_html.timeline_picture import timeline_picture
from pyhudi.clock import format_instant
from pyhudi.config import argument_checks as arg
from pyhudi.config.formatting import count_text, instant_text, size_text
from pyhudi.errors import ConfigError, StorageError
from pyhudi.slices.file_slice import FileSlice
from pyhudi.table.table_snapshot import TableSnapshot

_MAX_PARTITIONS = 100
_SIZES = (1 << 20, 8 << 20, 32 << 20, 128 << 20, 512 << 20)
_SIZE_NAMES = ("below 1 MiB", "1 to 8 MiB", "8 to 32 MiB", "32 to 128 MiB", "to 512 MiB", "more")
_SHARES = (0.0, 0.05, 0.2, 0.5, 1.0)
_SHARE_NAMES = ("none", "below 5 %", "5 to 20 %", "20 to 50 %", "50 to 100 %", "more")
_REMOVES_ROWS = frozenset({"INSERT_OVERWRITE", "INSERT_OVERWRITE_TABLE", "DELETE_PARTITION"})
"""Operations that remove rows which their own statistics do not count."""


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
    pages = Environment(
        loader=PackageLoader("pyhudi.api.html_report", "."),
        autoescape=True,
        finalize=escape,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.filters |= {
        "call": lambda service: "rebuild_metadata()" if service == REBUILD else f"{service}()",
        "count": lambda value, thing="": count_text(value, thing) if thing else f"{value:,}",
        "instant": instant_text,
        "partition_name": partition_name,
        "size": size_text,
    }
    data = collect_report_data(table)
    with charts.default_style():
        values = {**_facts(data), **_timeline(data), **_storage(data), **_growth(data)}
    page: str = pages.get_template("report.html").render(values, history=_history(data))
    return page


def _facts(data: ReportData) -> dict[str, object]:
    from pyhudi._native import __version__  # noqa: PLC0415 - only for this line

    table = data.table
    columns = data_columns(table)
    now = format_instant(table.clock.now_ms(), table.config.timezone)
    css = Path(__file__).with_name("report.css").read_text(encoding="utf-8")
    return {
        "data": data,
        "health": data.health,
        "config": table.config,
        "uri": table.storage.uri,
        "badges": badges(table),
        "facts": property_grid(table_properties(table)),
        "columns": columns,
        "schema": schema_grid(table, columns),
        "state_classes": {"ready": "good", "being made": "warm"},
        "css": Html(style.FRAGMENT + css),
        "version": __version__,
        "now": instant_text(now)[:19],
    }


def _timeline(data: ReportData) -> dict[str, object]:
    timeline = data.table.timeline
    by_time, by_order = (
        timeline_picture(
            timeline.instants,
            data.operations,
            merge_on_read=data.table.config.is_merge_on_read,
            with_ends=timeline.completes_in_names,
            by_order=in_order,
        )
        for in_order in (False, True)
    )
    return {
        "instants": timeline.instants,
        "commit_count": len(timeline.commits),
        "max_commits": MAX_COMMITS,
        "by_time": by_time,
        "by_order": by_order,
    }


def _storage(data: ReportData) -> dict[str, object]:
    partitions = partitions_of(data.slices)
    bases = [part.base.size for part in data.slices if part.base is not None]
    sizes = [sum(size >= bound for bound in _SIZES) for size in bases]
    shares = [sum(log_share(part) > bound for bound in _SHARES) for part in data.slices]
    counts = [sizes.count(number) for number in range(len(_SIZE_NAMES))]
    share_counts = [shares.count(number) for number in range(len(_SHARE_NAMES))]
    return {
        "partitions": partitions,
        "max_partitions": _MAX_PARTITIONS,
        "map": storage_map(partitions, data.waiting),
        "map_size": (WIDTH, HEIGHT),
        "base_sizes": charts.histogram(_SIZE_NAMES, counts, style.BASE, "base files"),
        "log_shares": charts.histogram(_SHARE_NAMES, share_counts, style.LOG, "file groups"),
        **{name: getattr(style, name) for name in ("BASE", "LOG", "REST")},
    }


def log_share(file_slice: FileSlice) -> float:
    """Return log bytes divided by base file bytes; infinity without a base file."""
    if file_slice.base is None or not file_slice.base.size:
        return float("inf") if file_slice.log_size else 0
    return file_slice.log_size / file_slice.base.size


def _growth(data: ReportData) -> dict[str, object]:
    commits = data.commits
    if not commits:
        return {}
    writes = [commit for commit in commits if not commit.is_service]
    rows = [
        ("inserted", style.INSERTED, attrgetter("inserted")),
        ("updated", style.UPDATED, attrgetter("updated")),
        ("deleted", style.DELETED, attrgetter("deleted")),
    ]
    net = [("rows", style.UPDATED, lambda commit: commit.inserted - commit.deleted)]
    in_bytes, in_files = _by_kind("bytes"), _by_kind("files")
    first = instant_text(commits[0].instant.requested)
    all_commits = len(data.table.timeline.commits)
    is_whole = all_commits == len(commits) and not data.has_archive
    since = ", in sum" if is_whole else f" since {first}, besides the rows of before"
    text = f"{count_text(len(commits), 'commit')} from {first} on"
    if all_commits > len(commits):
        text += f", the newest of {all_commits:,}"
    if any(commit.operation.upper() in _REMOVES_ROWS for commit in commits):
        text += ". Rows that overwriting and deleting partitions took away are not counted"
    return {
        "growth": [
            ("Rows by commit", charts.bars(writes, rows), rows),
            (f"Rows inserted less deleted{since}", charts.bars(writes, net, in_sum=True), ()),
            ("Bytes written", charts.bars(commits, in_bytes, in_bytes=True), in_bytes),
            ("Files written", charts.bars(commits, in_files), in_files),
        ],
        "growth_note": f"{text}.",
    }


def _by_kind(figure: str) -> list[charts.Series]:
    value = attrgetter(figure)
    return [
        ("writes", style.UPDATED, lambda commit: 0 if commit.is_service else value(commit)),
        ("services", style.SERVICE, lambda commit: value(commit) if commit.is_service else 0),
    ]


def _history(data: ReportData) -> list[dict[str, Any]]:
    if data.history is None:
        return []
    kinds = {
        (instant.requested, instant.action): kind_of(
            instant,
            data.operations.get(instant.requested),
            merge_on_read=data.table.config.is_merge_on_read,
        )
        for instant in data.table.timeline.instants
    }
    rows: list[dict[str, Any]] = data.history.to_pylist()
    for row in rows:
        row["kind"] = kinds.get((row["instant"], row["action"]), row["action"])
        row["color"] = style.ACTION_COLORS.get(row["kind"], "#888")
        row["note"] = _note(row)
    return rows


def _note(row: dict[str, Any]) -> object:
    """Return what was rolled back, or the extra metadata of the commit."""
    if row["rolled_back"]:
        return value_text(f"rolled back {', '.join(map(str, row['rolled_back']))}")
    return value_text("; ".join(f"{name}: {value}" for name, value in row["metadata"] or ()))
