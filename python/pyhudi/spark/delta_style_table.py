"""A Hudi table in the style of Delta's `DeltaTable`, with Spark's conditions and values.

This module collects requests. `delta_style_merge_frame.py` computes them and `delta_style_dml.py`
writes them. Names are Delta's, so programs need few changes.
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
from pyhudi.spark.delta_style_merge_frame import Action, SparkClause, When
from pyhudi.spark.engine import SparkEngine
from pyhudi.spark.to_dataframe import frame_of, frame_of_rows
from pyhudi.storage.storage import Storage
from pyhudi.txn.restore import RestoreResult
from pyhudi.txn.result import WriteResult

Condition: TypeAlias = "str | Column | None"


class SparkHudiTable:
    """A table for Spark programs; open one with `forPath`.

    Conditions and values are Spark SQL strings or Columns by name (`col("t.id")`); a Column of a
    frame (`frame["id"]`) works for that frame only. Each change is one commit, and finds rows by
    their record keys; a change that cannot raises an error.
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
        """Open the table at a location.

        Args:
            spark: a classic or Spark Connect session.
            path: location of the table.
            storage_options: as in `pyhudi.open_table`.
            options: as in `pyhudi.open_table`.

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
        """Return whether a location has a table."""
        return has_table(Storage(os.fspath(path), storage_options))

    def alias(self, aliasName: str) -> SparkHudiTable:
        """Return the table under an alias for conditions."""
        return SparkHudiTable(self._table, self._spark, aliasName)

    def toDF(self) -> DataFrame:
        """Return the rows of the current table."""
        frame = frame_of(self._table.refresh().scan())
        return frame if self._alias is None else frame.alias(self._alias)

    def delete(self, condition: Condition = None) -> WriteResult:
        """Delete the rows that match a condition, or all rows without one.

        Raises:
            SchemaMismatch: the table has duplicates of a key of which only some match.
            UnsupportedTableFeature: rows have no key, or pyhudi does not write to the table.
        """
        return self._change(SparkClause("matched", "delete", condition))

    def update(
        self,
        condition: Condition = None,
        set: Mapping[str, Any] | None = None,  # noqa: A002
    ) -> WriteResult:
        """Update columns of the rows that match a condition.

        Args:
            condition: which rows; None for all.
            set: new values by column: a Spark SQL string, a Column, or another value.

        Returns:
            What was written.

        Raises:
            ConfigError: nothing is set, key or partition columns would change, or ordering columns
                would get smaller values.
            SchemaMismatch: a column is unknown, or a value does not match it.
            UnsupportedTableFeature: rows have no key, pyhudi does not write to the table, or its
                merge rules would keep the stored value instead of a new one.
        """
        return self._change(SparkClause("matched", "update", condition, dict(set or {})))

    def merge(self, source: DataFrame, condition: str | Column) -> HudiMergeBuilder:
        """Return a builder that merges a source into the table; `execute` runs it.

        Args:
            source: a DataFrame, with an alias if both sides have the same names.
            condition: which of its rows match which of the table's.

        Returns:
            The builder, without clauses.
        """
        return HudiMergeBuilder(self._table, Change((), source, condition, self._alias))

    def history(self, limit: int | None = None) -> DataFrame:
        """Return who did what to the table, the newest first: pyhudi's `HudiTable.history`."""
        return frame_of_rows(self._spark, self._table.refresh().history(limit))

    def detail(self) -> DataFrame:
        """Return one row that describes the table."""
        table = self._table.refresh()
        config = table.config
        commits = table.state.timeline.commits
        values = {
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
        return frame_of_rows(
            self._spark, pa.table({k: pa.array([v], _DETAIL[k]) for k, v in values.items()})
        )

    def optimize(self) -> HudiOptimizeBuilder:
        """Return a builder that rewrites small files: clustering."""
        return HudiOptimizeBuilder(self._table)

    def compact(self, **kwargs: Any) -> ServiceResult:
        """Merge log files into base files: pyhudi's `HudiTable.compact`, on Spark."""
        return self._table.compact(**kwargs)

    def cluster(self, **kwargs: Any) -> ServiceResult:
        """Rewrite rows into fewer, sorted files: pyhudi's `HudiTable.cluster`, on Spark."""
        return self._table.cluster(**kwargs)

    def clean(self, **kwargs: Any) -> ServiceResult:
        """Remove files that newer ones replaced: pyhudi's `HudiTable.clean`, on Spark."""
        return self._table.clean(**kwargs)

    def restore(self, to: Moment, *, dry_run: bool = False) -> RestoreResult:
        """Restore the table to an earlier commit: pyhudi's `HudiTable.restore`."""
        return self._table.restore(to, dry_run=dry_run)

    def restoreToVersion(self, version: object) -> RestoreResult:
        """Restore the table to a commit. version: its instant, as in `history`.

        Raises:
            ConfigError: `version` is not an instant.
        """
        if not isinstance(version, str) or not version.isdecimal():
            raise ConfigError(
                f"version is {version!r}",
                hint="Pass the instant of a commit as a string: history() lists them.",
            )
        return self._table.restore(version)

    def restoreToTimestamp(self, timestamp: Moment) -> RestoreResult:
        """Restore the table to the newest commit up to a time."""
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

    Every method adds a clause and returns a new builder. Among the clauses of one type, the first
    whose condition is true decides; a row without a clause is ignored.
    """

    _table: ChangingTable
    _change: Change

    def whenMatchedUpdate(
        self,
        condition: Condition = None,
        set: Mapping[str, Any] | None = None,  # noqa: A002
    ) -> HudiMergeBuilder:
        """Update columns of the matched row in the table."""
        return self._with("matched", "update", condition, dict(set or {}))

    def whenMatchedUpdateAll(self, condition: Condition = None) -> HudiMergeBuilder:
        """Update all columns of the matched row with the source's values."""
        return self._with("matched", "update", condition)

    def whenMatchedDelete(self, condition: Condition = None) -> HudiMergeBuilder:
        """Delete the matched row."""
        return self._with("matched", "delete", condition)

    def whenNotMatchedInsert(
        self, condition: Condition = None, values: Mapping[str, Any] | None = None
    ) -> HudiMergeBuilder:
        """Insert a row of these values, with null in other columns."""
        return self._with("not_matched", "insert", condition, dict(values or {}))

    def whenNotMatchedInsertAll(self, condition: Condition = None) -> HudiMergeBuilder:
        """Insert the source row."""
        return self._with("not_matched", "insert", condition)

    def whenNotMatchedBySourceUpdate(
        self,
        condition: Condition = None,
        set: Mapping[str, Any] | None = None,  # noqa: A002
    ) -> HudiMergeBuilder:
        """Update columns of a table row that no source row matches."""
        return self._with("not_matched_by_source", "update", condition, dict(set or {}))

    def whenNotMatchedBySourceDelete(self, condition: Condition = None) -> HudiMergeBuilder:
        """Delete a table row that no source row matches."""
        return self._with("not_matched_by_source", "delete", condition)

    def execute(self) -> WriteResult:
        """Run the merge in one commit.

        Returns:
            What was written.

        Raises:
            ConfigError: there is no clause, key or partition columns would change, or ordering
                columns would get smaller values.
            SchemaMismatch: several source rows match one row of the table, an inserted row has an
                existing key, or values do not match.
            UnsupportedTableFeature: rows have no key, pyhudi does not write to the table, or its
                merge rules would keep the stored value instead of a new one.
        """
        if not self._change.clauses:
            raise ConfigError("the merge has no clause", hint="Add when... first.")
        return self._table.change(self._change)

    def _with(
        self,
        when: When,
        action: Action,
        condition: Condition,
        values: Mapping[str, Any] | None = None,
    ) -> HudiMergeBuilder:
        clause = SparkClause(when, action, condition, values)
        changed = replace(self._change, clauses=(*self._change.clauses, clause))
        return HudiMergeBuilder(self._table, changed)


@dataclass(frozen=True)
class HudiOptimizeBuilder:
    """Clustering with Delta's names."""

    _table: ChangingTable
    _partitions: Any = None

    def where(self, partitionFilter: Any) -> HudiOptimizeBuilder:
        """Cluster only some partitions: a filter on partition columns, as in pyhudi's `cluster`."""
        return replace(self, _partitions=partitionFilter)

    def executeCompaction(self) -> ServiceResult:
        """Rewrite small files into fewer ones."""
        return self._table.cluster(partitions=self._partitions)

    def executeZOrderBy(self, *cols: str) -> ServiceResult:
        """Sort rows along a Z-order curve over some columns."""
        return self._table.cluster(sort_by=cols, layout="zorder", partitions=self._partitions)
