"""A Hudi table in the manner of Delta's `DeltaTable`: conditions and values are Spark's own.

Thin: what is asked for is collected here, worked out in `delta_style_merge.py` and written in
`delta_style_dml.py`. Names are Delta's, so that programs need few changes.
"""
# ruff: noqa: N802, N803 - names of methods and arguments are Delta's

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession

from pyhudi.api.table_exists import has_table
from pyhudi.clock import Moment
from pyhudi.config.options import check_options
from pyhudi.errors import ConfigError
from pyhudi.services.result import ServiceResult
from pyhudi.spark.delta_style_dml import Change, ChangingTable
from pyhudi.spark.delta_style_merge import Kind, SparkClause, When
from pyhudi.spark.engine import SparkEngine
from pyhudi.spark.to_dataframe import frame_of
from pyhudi.spark.types import spark_schema, wire_schema
from pyhudi.storage.storage import Storage
from pyhudi.txn.restore import RestoreResult
from pyhudi.txn.result import WriteResult

Condition: TypeAlias = "str | Column | None"


class SparkHudiTable:
    """A table for Spark programs; made by `forPath`.

    Conditions and values are text in Spark's SQL or Columns by name (`col("t.id")`): a Column of a
    frame (`frame["id"]`) belongs to that frame. Each change is one commit, made by record key: a
    change that cannot be told by key raises an error.
    """

    def __init__(self, table: ChangingTable, spark: SparkSession, name: str | None = None) -> None:
        self._table = table
        self._spark = spark
        self._alias = name

    @classmethod
    def forPath(
        cls,
        spark: SparkSession,
        path: str | os.PathLike[str],
        *,
        storage_options: Mapping[str, str] | None = None,
        options: Mapping[str, object] | None = None,
    ) -> SparkHudiTable:
        """Opens the table of a folder.

        Args:
            spark: a classic or Spark Connect session.
            path: the table's folder.
            storage_options: as in `pyhudi.open_table`.
            options: likewise.

        Returns:
            The table.

        Raises:
            TableNotFound: there is no table.
            UnsupportedTableFeature: pyhudi cannot read it.
            ConfigError: an option is wrong.
        """
        storage = Storage(os.fspath(path), storage_options)
        table = ChangingTable(storage, SparkEngine(spark), check_options(options))
        return cls(table, spark)

    @classmethod
    def isHudiTable(
        cls,
        spark: SparkSession,  # noqa: ARG003 - as Delta has it
        path: str | os.PathLike[str],
        *,
        storage_options: Mapping[str, str] | None = None,
    ) -> bool:
        """Whether there is a table in a folder."""
        return has_table(Storage(os.fspath(path), storage_options))

    def alias(self, aliasName: str) -> SparkHudiTable:
        """The table under a name that conditions call it by."""
        return SparkHudiTable(self._table, self._spark, aliasName)

    def toDF(self) -> DataFrame:
        """The rows of the table as it is now."""
        frame = frame_of(self._table.refresh().scan())
        return frame if self._alias is None else frame.alias(self._alias)

    def delete(self, condition: Condition = None) -> WriteResult:
        """Removes the rows that meet a condition, all without one.

        Raises:
            SchemaMismatch: the table has copies of a key that the condition tells apart.
            UnsupportedTableFeature: rows have no key, or pyhudi does not write to the table.
        """
        return self._change(SparkClause("matched", "delete", condition))

    def update(
        self,
        condition: Condition = None,
        set: Mapping[str, Any] | None = None,  # noqa: A002
    ) -> WriteResult:
        """Gives columns of the rows that meet a condition new values.

        Args:
            condition: which rows; None for all.
            set: by column text in Spark's SQL, a Column, or a value that is neither.

        Returns:
            What was written.

        Raises:
            ConfigError: nothing is set, key or partition columns get other values, or ordering
                columns smaller ones.
            SchemaMismatch: a column is unknown, or a value does not fit it.
            UnsupportedTableFeature: rows have no key, pyhudi does not write to the table, or its
                rules keep what is stored in the place of a value.
        """
        return self._change(SparkClause("matched", "update", condition, dict(set or {})))

    def merge(self, source: DataFrame, condition: str | Column) -> HudiMergeBuilder:
        """A builder that merges a source into the table; `execute` carries it out.

        Args:
            source: a DataFrame, with an alias where names are in both.
            condition: which of its rows match which of the table's.

        Returns:
            The builder, without clauses.
        """
        return HudiMergeBuilder(self._table, Change((), source, condition, self._alias))

    def history(self, limit: int | None = None) -> DataFrame:
        """Who did what to the table, the newest first: `HudiTable.history` of pyhudi."""
        return _frame(self._spark, self._table.refresh().history(limit))

    def detail(self) -> DataFrame:
        """One row: what the table is."""
        table = self._table.refresh()
        config = table.config
        commits = table.state.timeline.commits
        found = {
            "format": "hudi",
            "name": table.name,
            "location": table.uri,
            "type": table.type,
            "version": table.version,
            "recordKeys": list(config.record_key_fields),
            "partitionColumns": list(config.partition_fields),
            "orderingColumns": list(config.ordering_fields),
            "lastInstant": commits[-1].requested if commits else None,
            "numPartitions": table.inspect.partitions().num_rows,
            "properties": [*sorted(config.properties.items())],
        }
        return _frame(
            self._spark, pa.table({k: pa.array([v], _DETAIL[k]) for k, v in found.items()})
        )

    def optimize(self) -> HudiOptimizeBuilder:
        """A builder that brings rows of small files together: clustering."""
        return HudiOptimizeBuilder(self._table)

    def compact(self, **how: Any) -> ServiceResult:
        """Log files into base files: `HudiTable.compact` of pyhudi, on Spark."""
        return self._table.compact(**how)

    def cluster(self, **how: Any) -> ServiceResult:
        """Rows into fewer, sorted files: `HudiTable.cluster` of pyhudi, on Spark."""
        return self._table.cluster(**how)

    def clean(self, **how: Any) -> ServiceResult:
        """Removes files that newer ones replaced: `HudiTable.clean` of pyhudi, on Spark."""
        return self._table.clean(**how)

    def restore(self, to: Moment, *, dry_run: bool = False) -> RestoreResult:
        """Brings the table back to an earlier commit: `HudiTable.restore` of pyhudi."""
        return self._table.restore(to, dry_run=dry_run)

    def restoreToVersion(self, version: object) -> RestoreResult:
        """Brings the table back to a commit. version: its instant, as `history` shows it.

        Raises:
            ConfigError: it is no instant.
        """
        if not isinstance(version, str) or not version.isdecimal():
            raise ConfigError(
                f"version is {version!r}",
                hint="Give the instant of a commit, as text: see history.",
            )
        return self._table.restore(version)

    def restoreToTimestamp(self, timestamp: Moment) -> RestoreResult:
        """Brings the table back to the newest commit by a time."""
        return self._table.restore(timestamp)

    def _change(self, clause: SparkClause) -> WriteResult:
        return self._table.change(Change((clause,), alias=self._alias))


_DETAIL = {
    **dict.fromkeys(("format", "name", "location", "type", "lastInstant"), pa.string()),
    **dict.fromkeys(("version", "numPartitions"), pa.int64()),
    **dict.fromkeys(("recordKeys", "partitionColumns", "orderingColumns"), pa.list_(pa.string())),
    "properties": pa.map_(pa.string(), pa.string()),
}


@dataclass(frozen=True)
class HudiMergeBuilder:
    """A merge of a source into a table; nothing happens before `execute`.

    Every clause gives a new builder. Of the clauses of a kind whose condition holds the first one
    decides; a row that none takes is left alone.
    """

    _table: ChangingTable
    _change: Change

    def whenMatchedUpdate(
        self,
        condition: Condition = None,
        set: Mapping[str, Any] | None = None,  # noqa: A002
    ) -> HudiMergeBuilder:
        """Gives columns of the table's row new values."""
        return self._with("matched", "update", condition, dict(set or {}))

    def whenMatchedUpdateAll(self, condition: Condition = None) -> HudiMergeBuilder:
        """Gives all columns of the table's row the source's values."""
        return self._with("matched", "update", condition)

    def whenMatchedDelete(self, condition: Condition = None) -> HudiMergeBuilder:
        """Removes the table's row."""
        return self._with("matched", "delete", condition)

    def whenNotMatchedInsert(
        self, condition: Condition = None, values: Mapping[str, Any] | None = None
    ) -> HudiMergeBuilder:
        """Adds a row of these values, null in other columns."""
        return self._with("not_matched", "insert", condition, dict(values or {}))

    def whenNotMatchedInsertAll(self, condition: Condition = None) -> HudiMergeBuilder:
        """Adds the source's row."""
        return self._with("not_matched", "insert", condition)

    def whenNotMatchedBySourceUpdate(
        self,
        condition: Condition = None,
        set: Mapping[str, Any] | None = None,  # noqa: A002
    ) -> HudiMergeBuilder:
        """Gives columns of a row of the table that no row of the source matches new values."""
        return self._with("not_matched_by_source", "update", condition, dict(set or {}))

    def whenNotMatchedBySourceDelete(self, condition: Condition = None) -> HudiMergeBuilder:
        """Removes a row of the table that no row of the source matches."""
        return self._with("not_matched_by_source", "delete", condition)

    def execute(self) -> WriteResult:
        """Carries out the merge in one commit.

        Returns:
            What was written.

        Raises:
            ConfigError: there is no clause, key or partition columns would change, or ordering
                columns get smaller values.
            SchemaMismatch: several rows of the source match one of the table, a row to be inserted
                has a key that the table has, or values do not fit.
            UnsupportedTableFeature: rows have no key, pyhudi does not write to the table, or its
                rules keep what is stored in the place of a value.
        """
        if not self._change.clauses:
            raise ConfigError("the merge has no clause", hint="Add when... first.")
        return self._table.change(self._change)

    def _with(
        self, when: When, kind: Kind, condition: Condition, values: Mapping[str, Any] | None = None
    ) -> HudiMergeBuilder:
        clause = SparkClause(when, kind, condition, values)
        changed = replace(self._change, clauses=(*self._change.clauses, clause))
        return HudiMergeBuilder(self._table, changed)


@dataclass(frozen=True)
class HudiOptimizeBuilder:
    """Clustering by Delta's words."""

    _table: ChangingTable
    _partitions: Any = None

    def where(self, partitionFilter: Any) -> HudiOptimizeBuilder:
        """Only some partitions: a filter on partition columns, as pyhudi's `cluster` takes it."""
        return replace(self, _partitions=partitionFilter)

    def executeCompaction(self) -> ServiceResult:
        """Small files become fewer."""
        return self._table.cluster(partitions=self._partitions)

    def executeZOrderBy(self, *cols: str) -> ServiceResult:
        """Rows are sorted along a Z-order curve over some columns."""
        return self._table.cluster(sort_by=cols, layout="zorder", partitions=self._partitions)


def _frame(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """A few rows of the driver's as a DataFrame."""
    wire = wire_schema(rows.schema)
    values = [
        tuple(
            dict(value) if pa.types.is_map(field.type) and value is not None else value
            for field, value in zip(wire, row.values(), strict=True)
        )
        for row in rows.cast(wire).to_pylist()
    ]
    return spark.createDataFrame(values, spark_schema(wire))
