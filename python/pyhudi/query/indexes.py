"""Leaving out what cannot hold a wanted row: partitions by statistics, file slices by indexes.

A slice may go only if no merged row of it can match. A merged row takes each value from one of the
slice's files, so a condition rules out a slice when it rules out every file of it; conditions are
not mixed, since partial updates bring columns of several files together. Indexes of the present
(record index, partition statistics) say nothing of base files alone or of times gone by, and a
table handle that others have written after shows such a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TypeVar

import pyarrow as pa

from pyhudi.config.metadata_names import BLOOM_FILTERS, COLUMN_STATS, PARTITION_STATS, RECORD_INDEX
from pyhudi.config.options import DATA_SKIPPING, is_enabled
from pyhudi.metadata import definitions as defined
from pyhudi.metadata.access import MetadataAccess
from pyhudi.metadata.definitions import IndexDefinition
from pyhudi.metadata.expression_predicates import implied
from pyhudi.metadata.reader import MetadataTable
from pyhudi.query import lookups
from pyhudi.query.buckets import hash_rings, simple_buckets
from pyhudi.query.explain import Step, kept
from pyhudi.query.key_predicates import allowed_texts, wanted_keys
from pyhudi.query.ranges import ruled_out
from pyhudi.schema.predicates import Conjunct
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.read_tasks import ScanRequest, TableState
from pyhudi.timeline.unique_keys import keys_are_unique

_T = TypeVar("_T")

_INSTEAD = "fewer files are left out"
_SCHEMA_HISTORY = ".hoodie/.schema"

Keep = Callable[[Sequence["FileSlice"]], "list[bool] | None"]
"""Which slices may match; None when the index turns out to know nothing."""


@dataclass(frozen=True)
class Pruner:
    """The indexes of a table against one scan's filter."""

    state: TableState
    request: ScanRequest
    access: MetadataAccess

    def partitions(self, paths: Sequence[str]) -> tuple[list[str], list[Step]]:
        """The partitions that may hold wanted rows, by their statistics."""
        found, steps = list(paths), []
        usable = self._of_now and self._bounds_hold and not self._is_custom
        if usable and self.access.has(PARTITION_STATS):
            for conjunct in self._stored:
                keep = self._use(partial(_partitions_within, paths=found, conjunct=conjunct))
                if keep is not None:
                    gone = tuple(p for p, stays in zip(found, keep, strict=True) if not stays)
                    steps.append(Step(f"{PARTITION_STATS}({conjunct[0]})", len(found), gone))
                    found = [p for p, stays in zip(found, keep, strict=True) if stays]
        return found, steps

    def slices(self, slices: list[FileSlice]) -> tuple[list[FileSlice], list[Step]]:
        """The slices that may hold wanted rows, by every index that knows of the filter."""
        steps: list[Step] = []
        for index, look in self._lookups() if self._conjuncts else ():
            keep = look(slices) if slices else None
            if keep is not None:
                slices, step = kept(index, slices, keep)
                steps.append(step)
        return slices, steps

    @cached_property
    def _conjuncts(self) -> tuple[Conjunct, ...]:
        if self.request.where is None or not is_enabled(self.state.options, DATA_SKIPPING):
            return ()
        return self.request.where.conjuncts

    @cached_property
    def _shown_otherwise(self) -> frozenset[str]:
        """Columns whose values in files may differ from those that the filter sees."""
        return frozenset((*self.state.as_text, *self.state.config.partition_fields))

    @cached_property
    def _stored(self) -> list[Conjunct]:
        return [one for one in self._conjuncts if one[0] not in self._shown_otherwise]

    @property
    def _of_now(self) -> bool:
        """Whether merged rows of the present are read, which is what some indexes are about."""
        merged = not (self.request.read_optimized and self.state.config.is_merge_on_read)
        return merged and self.state.timeline.bound is None and self.access.later is None

    @property
    def _is_custom(self) -> bool:
        """Whether merging may make values that are in no file."""
        config = self.state.config
        return config.is_merge_on_read and config.merge.mode == "CUSTOM"

    @cached_property
    def _bounds_hold(self) -> bool:
        """Whether a column's name means the same in all files: not after renames."""
        evolved = self.state.evolution is not None
        return not evolved and not self.state.storage.list_dir(_SCHEMA_HISTORY)[1]

    @cached_property
    def _keys(self) -> list[str] | None:
        return wanted_keys(self.state.config, self._conjuncts, self._shown_otherwise)

    @cached_property
    def _definitions(self) -> Mapping[str, IndexDefinition]:
        return self._use(lambda table: table.definitions) or {}

    def _use(self, work: Callable[[MetadataTable], _T]) -> _T | None:
        return self.access.use(_INSTEAD, work)

    def _lookup(self, work: Callable[..., list[bool] | None], *args: object) -> Keep:
        return lambda slices: self._use(lambda table: work(table, slices, *args))

    def _lookups(self) -> Iterator[tuple[str, Keep]]:
        """The indexes that can tell something, cheap ones first."""
        yield from self._by_bucket()
        if self._of_now:
            yield from self._by_location()
        if self._bounds_hold:
            yield from self._by_bounds()
            yield from self._by_expression()
        if self._keys is not None and self.access.has(BLOOM_FILTERS):
            yield BLOOM_FILTERS, self._lookup(lookups.in_filters, self._keys)

    def _by_bucket(self) -> Iterator[tuple[str, Keep]]:
        state, besides = self.state, self._shown_otherwise
        test = simple_buckets(state.config, state.options, self._conjuncts, besides)
        if test is not None:
            yield "bucket index", lambda slices: list(map(test, slices))
        rings = hash_rings(
            state.storage, state.timeline, state.config, state.options, self._conjuncts, besides
        )
        if rings is not None:
            yield "bucket index (hash ring)", lambda slices: list(map(rings.may_match, slices))

    def _by_location(self) -> Iterator[tuple[str, Keep]]:
        if not self.access.has(RECORD_INDEX):
            return
        if self._keys is not None:
            yield RECORD_INDEX, self._if_unique(self._lookup(lookups.with_keys, self._keys))
        for name, definition in self._definitions.items():
            if definition.kind != defined.SECONDARY_INDEX or not self.access.has(name):
                continue
            if len(definition.columns) != 1 or not self._bounds_hold:
                continue
            values = allowed_texts(self._conjuncts, definition.columns[0], self._shown_otherwise)
            if values is not None:
                look = self._lookup(lookups.with_values, definition, values)
                yield name, self._if_unique(look)

    def _if_unique(self, look: Keep) -> Keep:
        """A record index has one place of a key: it tells nothing where there may be more."""
        return lambda slices: look(slices) if keys_are_unique(self.state.timeline) else None

    def _by_bounds(self) -> Iterator[tuple[str, Keep]]:
        if not self.access.has(COLUMN_STATS):
            return
        for conjunct in self._stored:
            if _is_indexed(self._definitions, conjunct[0]):
                look = self._lookup(lookups.within_bounds, conjunct)
                yield f"{COLUMN_STATS}({conjunct[0]})", self._merged_by_rule(look)

    def _by_expression(self) -> Iterator[tuple[str, Keep]]:
        for name, one in self._definitions.items():
            if not (name.startswith("expr_index_") and self.access.has(name)):
                continue
            for conjunct in [i for c in self._stored for i in implied(one, c)]:
                if one.kind == defined.COLUMN_STATS:
                    look = self._lookup(lookups.within_bounds, conjunct, name)
                    yield name, self._merged_by_rule(look)
                elif one.kind == defined.BLOOM_FILTERS:
                    texts = allowed_texts([conjunct], conjunct[0])
                    if texts is not None:
                        yield name, self._lookup(lookups.in_filters, texts, name)

    def _merged_by_rule(self, look: Keep) -> Keep:
        """With somebody's own merger, only slices without anything to merge can be ruled out."""
        if not self._is_custom:
            return look

        def careful(slices: Sequence[FileSlice]) -> list[bool] | None:
            keep = look(slices)
            pairs = zip(keep or (), slices, strict=False)
            return None if keep is None else [stays or bool(one.logs) for stays, one in pairs]

        return careful


def _partitions_within(
    table: MetadataTable, *, paths: Sequence[str], conjunct: Conjunct
) -> list[bool] | None:
    if not paths or not _is_indexed(table.definitions, conjunct[0]):
        return None
    name, _, values = conjunct
    index = table.partition(PARTITION_STATS)
    stats = index.stats(name, values.type, pa.array(paths, pa.string()))
    return [not out for out in ruled_out(stats, conjunct).to_pylist()]


def _is_indexed(definitions: Mapping[str, IndexDefinition], column: str) -> bool:
    """Whether statistics of a column are kept up; where nothing says so, they are."""
    known = definitions.get(COLUMN_STATS)
    return known is None or not known.columns or column in known.columns
