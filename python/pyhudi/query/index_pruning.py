"""Leaving out what cannot hold a wanted row: partitions by statistics, file slices by indexes.

`metadata/partition_types/` reads each index of the metadata table; `metadata/pruning_context.py`
decides what may be concluded from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from pyhudi.cached_property import cached_property
from pyhudi.metadata.fallback_reader import MetadataAccess
from pyhudi.metadata.partition_types.base import MetadataPartitionType
from pyhudi.metadata.partition_types.registry import kinds_of
from pyhudi.metadata.pruning_context import INSTEAD, Look, PruningContext
from pyhudi.query.bucket_pruning import hash_rings, prune_by_bucket, prune_by_ring, simple_buckets
from pyhudi.query.explain import Step, prune
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.read_tasks import ScanRequest
from pyhudi.table.table_snapshot import TableSnapshot

Keep = Callable[[Sequence["FileSlice"]], "list[bool] | None"]
"""Which slices may match; None when the index turns out to know nothing."""


@dataclass(frozen=True)
class Pruner:
    """The indexes of a table against one scan's filter."""

    table: TableSnapshot
    request: ScanRequest
    access: MetadataAccess

    @cached_property
    def _question(self) -> PruningContext:
        return PruningContext(self.table, self.request, self.access)

    def partitions(self, paths: Sequence[str]) -> tuple[list[str], list[Step]]:
        """The partitions that may hold wanted rows, by what indexes tell of whole partitions."""
        found, steps = list(paths), []
        for kind, name in self._kinds:
            for index, look in kind.partition_lookups(self._question, name):
                keep = self.access.use(INSTEAD, partial(look, paths=found)) if found else None
                if keep is not None:
                    gone = tuple(p for p, stays in zip(found, keep, strict=True) if not stays)
                    steps.append(Step(index, len(found), gone))
                    found = [p for p, stays in zip(found, keep, strict=True) if stays]
        return found, steps

    def slices(self, slices: list[FileSlice]) -> tuple[list[FileSlice], list[Step]]:
        """The slices that may hold wanted rows, by every index that knows of the filter."""
        steps: list[Step] = []
        for index, look in self._lookups() if self._question.conjuncts else ():
            keep = look(slices) if slices else None
            if keep is not None:
                slices, step = prune(index, slices, keep)
                steps.append(step)
        return slices, steps

    @property
    def _kinds(self) -> list[tuple[MetadataPartitionType, str]]:
        """Those that can be asked, cheap ones first."""
        listed = [name for name in self.table.config.metadata_partitions if self.access.has(name)]
        return sorted(kinds_of(listed), key=lambda known: known[0].lookup_cost)

    def _lookups(self) -> Iterator[tuple[str, Keep]]:
        """The indexes that can tell something, cheap ones first."""
        # What the record index tells of keys no bucket can tell more of.
        if self._question.key_locations is None:
            yield from self._by_bucket()
        for kind, name in self._kinds:
            for index, look in kind.lookups(self._question, name):
                yield index, partial(self._apply_look, look)

    def _apply_look(self, look: Look, slices: Sequence[FileSlice]) -> list[bool] | None:
        return self.access.use(INSTEAD, lambda table: look(table, slices))

    def _by_bucket(self) -> Iterator[tuple[str, Keep]]:
        table, conjuncts = self.table, self._question.conjuncts
        besides = self._question.converted_columns
        test = simple_buckets(table.config, table.options, conjuncts, besides)
        if test is not None:
            yield "bucket index", lambda slices: prune_by_bucket(table, slices, test)
        rings = hash_rings(
            table.storage, table.timeline, table.config, table.options, conjuncts, besides
        )
        if rings is not None:
            yield "bucket index (hash ring)", lambda slices: prune_by_ring(table, slices, rings)
