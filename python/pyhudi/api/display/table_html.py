"""Notebook HTML of a table handle, and the head of the report page. No file is listed."""

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
    """Return the notebook HTML of a table handle."""
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
    """Return type, version and snapshot as short labels."""
    config = table.config
    type_label = "merge-on-read" if config.is_merge_on_read else "copy-on-write"
    labels = [badge(type_label), badge(f"version {config.version.code}")]
    if config.cdc_enabled:
        labels.append(badge("change data capture"))
    if table.timeline.bound is not None:
        labels.append(badge(f"as of {instant_text(table.timeline.bound)}", "warm"))
    return join(labels)


def table_facts(table: TableSnapshot) -> dict[str, object]:
    """Return what the properties and the timeline record."""
    config, timeline = table.config, table.timeline
    facts: dict[str, object] = {}
    if config.database:
        facts["database"] = config.database
    facts["record key"] = ", ".join(config.record_key_fields) or nothing("generated")
    facts["partitioned by"] = ", ".join(config.partition_fields) or nothing("not partitioned")
    if config.ordering_fields:
        facts["ordered by"] = ", ".join(config.ordering_fields)
    facts["last commit"] = _last(table, timeline.last_commit)
    facts["timeline"] = _count_text(timeline.instants)
    facts["metadata table"] = ", ".join(config.metadata_partitions) or nothing("none")
    if config.bootstrap_path is not None:
        facts["bootstrapped from"] = tag("code", config.bootstrap_path)
    return facts


def data_columns(table: TableSnapshot) -> list[pa.Field]:
    """Return the table's columns without Hudi's meta columns."""
    return [column for column in scan_schema(table) if not is_meta(column.name)]


def schema_grid(table: TableSnapshot, columns: list[pa.Field]) -> Html:
    """Return a grid of column names, types and roles."""
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
    result = grid(("column", "type", "", ""), rows)
    if len(columns) <= _COLUMNS_MOST:
        return result
    return join([result, note(f"the first {_COLUMNS_MOST} of {len(columns):,} columns")])


def _last(table: TableSnapshot, commit: Instant | None) -> object:
    if commit is None:
        return nothing("none yet")
    # The timeline has cached the metadata, because the schema came from them.
    operation = table.timeline.commit_metadata(commit).operation_type
    done = f"{commit.action}, {operation}" if operation else commit.action
    return f"{instant_text(commit.requested)} ({done})"


def _count_text(instants: tuple[Instant, ...]) -> str:
    pending = sum(not instant.is_completed for instant in instants)
    return f"{len(instants):,} instants, {pending:,} of them pending"
