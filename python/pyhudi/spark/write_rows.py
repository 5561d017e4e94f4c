"""The rows of a write as a DataFrame, and what is done to them before they are written.

Nothing happens until a job asks for the rows; what several jobs need is kept on the executors.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from pyhudi.config.index_options import (
    BLOOM,
    BUCKET,
    GLOBAL_BLOOM,
    PARTITIONED_RECORD_INDEX,
    RECORD_INDEX,
)
from pyhudi.index import bloom, locate
from pyhudi.schema.record_keys import PARTITION_PATH, RECORD_KEY
from pyhudi.spark.columns import NUMBERED, PLACED, SEQ, with_fields
from pyhudi.spark.flow import Kept, arrow_schema, collected, mapped
from pyhudi.spark.keying import Combine, KeyRows
from pyhudi.spark.matching import LookUpSource
from pyhudi.spark.remote import RemoteSession
from pyhudi.spark.stored_keys import joined
from pyhudi.spark.tagging import Joined, LookUp, LookUpDeletes, Settle
from pyhudi.write.write_context import Session

_ASKED_BY_KEY = (BUCKET, RECORD_INDEX, PARTITIONED_RECORD_INDEX)
_BLOOMS = (BLOOM, GLOBAL_BLOOM)


@dataclass(frozen=True)
class FrameRows:
    """The rows of a write, as far as they have come."""

    session: Session
    keep: Kept
    frame: DataFrame
    schema: pa.Schema
    """With record key and partition path in front, as the table has them."""

    def with_frame(self, frame: DataFrame) -> FrameRows:
        """Other rows of the same write."""
        return replace(self, frame=frame)

    def recovered(self) -> FrameRows:
        """After the clean-up that comes before a write."""
        return replace(self, session=self.session.recovered())

    def kept(self) -> FrameRows:
        """The rows, to be read by several jobs."""
        return self.with_frame(self.keep.keep(self.frame))

    def combined(self) -> FrameRows:
        """One row a key."""
        step = Combine(RemoteSession.of(self.session), self.schema)
        sorted_rows = self.frame.repartition(RECORD_KEY).sortWithinPartitions(RECORD_KEY, SEQ)
        return self.with_frame(mapped(sorted_rows, step, self._numbered))

    def paths(self) -> list[str]:
        """The partition paths of the rows; works them all out, so bad ones are found here."""
        found = self.frame.select(PARTITION_PATH).distinct()
        return sorted(row[0] for row in collected(found, "make keys"))

    def located(self, paths: list[str]) -> FrameRows:
        """The rows with where they are."""
        index = self.session.index
        remote = RemoteSession.of(self.session, None if index.is_global else paths)
        if index.kind in _ASKED_BY_KEY:
            return self.placed(LookUp(remote, self.schema)).kept()
        rows = self._joined(remote, any_partition=index.is_global)
        if not index.is_global:
            step = Joined(RemoteSession.of(self.session), tuple(self.schema.names))
            return self.with_frame(rows).placed(step).kept()
        rows = rows.repartition(RECORD_KEY).sortWithinPartitions(RECORD_KEY, SEQ)
        return self.with_frame(rows).placed(Settle(remote, self.schema)).kept()

    def located_source(self, paths: list[str], *, deletes: bool) -> FrameRows:
        """The rows of a merge's source with where their keys are, or new ones have to go.

        deletes: the merge may delete rows.
        """
        index = self.session.index
        remote = RemoteSession.of(self.session, None if index.is_global else paths)
        in_files = deletes and locate.misses_copies(self.session)
        if index.kind in _ASKED_BY_KEY and not in_files:
            return self.placed(LookUpSource(remote, deletes)).kept()
        rows = self._joined(remote, any_partition=index.is_global)
        step = Joined(RemoteSession.of(self.session), tuple(self.schema.names))
        return self.with_frame(rows).placed(step).kept()

    def placed_unseen(self, paths: list[str]) -> FrameRows:
        """The rows with where they have to go, whether or not the table has their keys."""
        remote = RemoteSession.of(self.session, paths if self.session.index.kind == BUCKET else ())
        return self.placed(LookUp(remote, self.schema, locate.for_insert)).kept()

    def placed_anew(self, paths: list[str]) -> FrameRows:
        """The rows with the buckets to go to when all of their partitions are made anew."""
        remote = RemoteSession.of(self.session, paths)
        return self.placed(LookUp(remote, self.schema, locate.look_up_anew)).kept()

    def located_deletes(self, paths: list[str] | None) -> FrameRows:
        """Keys that are to be deleted, with where they are. paths: None to look in all."""
        index = self.session.index
        remote = RemoteSession.of(self.session, None if index.is_global else paths)
        by_key = (RECORD_INDEX, *([BUCKET, PARTITIONED_RECORD_INDEX] if paths is not None else []))
        if index.kind in by_key and not locate.misses_copies(self.session):
            return self.placed(LookUpDeletes(remote, paths is not None)).kept()
        rows = self._joined(remote, any_partition=paths is None)
        step = Joined(RemoteSession.of(self.session), tuple(self.schema.names), deletes=True)
        return self.with_frame(rows).placed(step).kept()

    def _joined(self, remote: RemoteSession, *, any_partition: bool) -> DataFrame:
        by_bloom = self.session.index.kind in _BLOOMS
        return joined(
            self.session.engine,
            self.frame,
            self.session.key_source,
            remote.groups(None)[1],
            index=self.session.index,
            any_partition=any_partition,
            filters=bloom.filters_of(self.session) if by_bloom else None,
        )

    def placed(self, step: Any) -> FrameRows:
        """The rows that a step makes, with the columns that say where they go."""
        return self.with_frame(mapped(self.frame, step, with_fields(self._numbered, PLACED)))

    @property
    def _numbered(self) -> pa.Schema:
        return with_fields(self.schema, NUMBERED)


@contextmanager
def keyed(
    session: Session,
    data: DataFrame,
    schema_mode: str,
    *,
    generate: bool = False,
    partial: bool = False,
) -> Iterator[FrameRows]:
    """The data as rows of the table, which no job has worked out yet."""
    given = arrow_schema(data).empty_table()
    session, _ = session.evolved(given, schema_mode)
    mode = "partial" if partial else schema_mode
    step, schema = KeyRows.of(session, given, mode, generate=generate)
    with Kept() as keep:
        yield FrameRows(session, keep, mapped(data, step, with_fields(schema, NUMBERED)), schema)
