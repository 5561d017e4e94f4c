"""Merges a DataFrame into the table by record key; the clauses run where the files are read.

The source's rows are tagged and matched with the rows of their file groups, and the result is
written like the rows of an upsert. The rules are those of `write/merge.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from pyhudi.config.meta_columns import PARTITION_PATH, RECORD_KEY
from pyhudi.errors import SchemaMismatch
from pyhudi.input.conform import data_schema
from pyhudi.input.decode_encodings import check_names
from pyhudi.slices.read_tasks import ReadTask
from pyhudi.spark.assigned_frame import AssignedFrame
from pyhudi.spark.column_compatibility import check_set_zones, check_zones
from pyhudi.spark.executor_context import RemoteContext
from pyhudi.spark.executor_steps import CachedFrames, arrow_schema, collect, map_batches
from pyhudi.spark.internal_columns import ASSIGNED, DESTINATION, GROUP, NUMBERED, SEQ, with_fields
from pyhudi.spark.merge_steps import LOCATION, SEPARATOR, Absent, Match, Resolve, Source, SourceKeys
from pyhudi.spark.write_rows import FrameRows
from pyhudi.write.merge_planning import (
    MergeClause,
    add_source_keys,
    check_clauses,
    tasks_for_groups,
)
from pyhudi.write.write_context import WriteContext

_KEYS = [(RECORD_KEY, pa.string()), (PARTITION_PATH, pa.string())]


@contextmanager
def merge_by_key(
    context: WriteContext, frame: DataFrame, clauses: Sequence[MergeClause]
) -> Iterator[AssignedFrame]:
    """Yield the rows that the clauses produce; raises as `write.merge.merge` does."""
    source_schema = arrow_schema(frame)
    check_names(source_schema)
    empty = source_schema.empty_table()
    add_source_keys(context, empty)
    columns = data_schema(context.schema.arrow)
    config = context.config
    keys = {name.split(".")[0] for name in (*config.record_key_fields, *config.partition_fields)}
    check_zones(frame, (field for field in columns if field.name in keys))
    renamed = [field.with_name(f"_pyhudi_source_{at}") for at, field in enumerate(source_schema)]
    source = Source(
        context=RemoteContext.of(context),
        source_schema=source_schema,
        renamed=pa.schema([*_KEYS, *renamed]),
        rows=pa.schema([*_KEYS, *columns]),
        on_match=check_clauses(context, empty, clauses, matched=True),
        on_absence=check_clauses(context, empty, clauses, matched=False),
    )
    all_clauses = (*source.on_match, *source.on_absence)
    check_set_zones(frame.sparkSession, source_schema, columns, all_clauses)
    with CachedFrames() as keep:
        keyed = map_batches(frame, SourceKeys(source), with_fields(source.renamed, NUMBERED))
        rows = FrameRows(context, keep, keyed, source.renamed).cache()
        paths = rows.paths()
        _check_unique_keys(rows)
        deletes = any(clause.values is None for clause in source.on_match)
        tagged = rows.after_recovery().tag_source(paths, deletes=deletes)
        reads = _reads(tagged)
        groups_read = frozenset(
            (read.slice.partition, read.slice.file_id) for read in reads.values()
        )
        yield replace(_merge_rows(tagged, source, reads).count_by_file(), groups_read=groups_read)


def _check_unique_keys(rows: FrameRows) -> None:
    is_global = rows.context.index.is_global
    key_columns = [RECORD_KEY] if is_global else [RECORD_KEY, PARTITION_PATH]
    duplicates = rows.frame.groupBy(*key_columns).count().where(sf.col("count") > 1).limit(1)
    if collect(duplicates, "look for duplicate keys"):
        raise SchemaMismatch(
            "the source has several rows of one key",
            hint="Keep one row per key in the source.",
        )


def _merge_rows(tagged: FrameRows, source: Source, reads: dict[str, ReadTask]) -> FrameRows:
    """Return the rows of the table that the clauses produce, with their destinations."""
    source = replace(source, context=RemoteContext.of(tagged.context))
    schema = with_fields(with_fields(source.rows, NUMBERED), ASSIGNED)
    location = sf.concat_ws(SEPARATOR, sf.col(DESTINATION), sf.col(GROUP))
    hit = tagged.frame.where(sf.col(GROUP).isNotNull()).withColumn(LOCATION, location)
    routed = hit.repartition(LOCATION).sortWithinPartitions(LOCATION)
    matched = map_batches(routed, Match(source, reads), schema)
    new = map_batches(tagged.frame.where(sf.col(GROUP).isNull()), Absent(source), schema)
    both = matched.union(new).repartition(RECORD_KEY).sortWithinPartitions(RECORD_KEY, SEQ)
    return replace(tagged, frame=map_batches(both, Resolve(), schema), schema=source.rows).cache()


def _reads(tagged: FrameRows) -> dict[str, ReadTask]:
    """Return how to read the file groups with keys of the source, by `LOCATION`."""
    context = tagged.context
    locations = tagged.frame.where(sf.col(GROUP).isNotNull()).select(DESTINATION, GROUP).distinct()
    names = {(row[0], row[1]) for row in collect(locations, "find where rows are")}
    groups, _ = context.groups(sorted({destination for destination, _ in names}))
    groups_by_name = {context.index.location_of(group.slice): group for group in groups}
    hit = {name: group for name, group in groups_by_name.items() if name in names}
    reads = tasks_for_groups(context, list(hit.values()))
    return {SEPARATOR.join(name): read for name, read in zip(hit, reads, strict=True)}
