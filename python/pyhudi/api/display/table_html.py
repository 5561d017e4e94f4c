"""A table in a notebook, and what the head of the report page says of it. No file is listed."""

from __future__ import annotations

import pyarrow as pa

from pyhudi.api.display.html import Html, badge, grid, join, note, nothing, tag, value_text
from pyhudi.api.display.html import facts as facts_grid
from pyhudi.api.display.style import fragment
from pyhudi.config.actions import Instant
from pyhudi.config.formatting import instant_text
from pyhudi.schema.table_schema import is_meta
from pyhudi.slices.read_tasks import scan_schema
from pyhudi.table.table_snapshot import TableSnapshot

_COLUMNS_MOST = 100


def table_html(table: TableSnapshot) -> str:
    """What a notebook shows of a table handle."""
    columns = data_columns(table)
    return fragment(
        tag("div", tag("b", table.config.name), badges(table), class_="head"),
        facts_grid({"location": tag("code", table.storage.uri), **table_facts(table)}),
        tag(
            "details",
            tag("summary", f"{len(columns):,} columns"),
            schema_grid(table, columns),
            open="" if len(columns) <= 12 else None,
        ),
    )


def badges(table: TableSnapshot) -> Html:
    """Type, version and moment in a few words."""
    config = table.config
    kind = "merge-on-read" if config.is_merge_on_read else "copy-on-write"
    shown = [badge(kind), badge(f"version {config.version.code}")]
    if config.cdc_enabled:
        shown.append(badge("change data capture"))
    if table.timeline.bound is not None:
        shown.append(badge(f"as of {instant_text(table.timeline.bound)}", "warm"))
    return join(shown)


def table_facts(table: TableSnapshot) -> dict[str, object]:
    """What the properties and the timeline say."""
    config, timeline = table.config, table.timeline
    found: dict[str, object] = {}
    if config.database:
        found["database"] = config.database
    found["record key"] = ", ".join(config.record_key_fields) or nothing("generated")
    found["partitioned by"] = ", ".join(config.partition_fields) or nothing("not partitioned")
    if config.ordering_fields:
        found["ordered by"] = ", ".join(config.ordering_fields)
    found["last commit"] = _last(table, timeline.last_commit)
    found["timeline"] = _count_text(timeline.instants)
    found["metadata table"] = ", ".join(config.metadata_partitions) or nothing("none")
    if config.bootstrap_path is not None:
        found["bootstrapped from"] = tag("code", config.bootstrap_path)
    return found


def data_columns(table: TableSnapshot) -> list[pa.Field]:
    """The table's columns without Hudi's own."""
    return [column for column in scan_schema(table) if not is_meta(column.name)]


def schema_grid(table: TableSnapshot, columns: list[pa.Field]) -> Html:
    """Names, types and what each column is for."""
    config = table.config
    roles = {
        "key": config.record_key_fields,
        "partition": config.partition_fields,
        "ordering": config.ordering_fields,
    }
    rows = [
        (
            tag("code", value_text(column.name)),
            value_text(str(column.type)),
            "" if column.nullable else "not null",
            join(badge(role) for role, names in roles.items() if column.name in names),
        )
        for column in columns[:_COLUMNS_MOST]
    ]
    found = grid(("column", "type", "", ""), rows)
    if len(columns) <= _COLUMNS_MOST:
        return found
    return join([found, note(f"the first {_COLUMNS_MOST} of {len(columns):,} columns")])


def _last(table: TableSnapshot, commit: Instant | None) -> object:
    if commit is None:
        return nothing("none yet")
    # The schema came from its metadata, which the timeline keeps.
    operation = table.timeline.commit_metadata(commit).operation_type
    done = f"{commit.action}, {operation}" if operation else commit.action
    return f"{instant_text(commit.requested)} ({done})"


def _count_text(instants: tuple[Instant, ...]) -> str:
    pending = sum(not instant.is_completed for instant in instants)
    return f"{len(instants):,} instants, {pending:,} of them pending"
