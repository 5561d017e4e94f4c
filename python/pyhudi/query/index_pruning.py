"""Pruning of items without a matching row: partitions by statistics, file slices by indexes.

`metadata/partition_types/` reads each index of the metadata table; `metadata/pruning_context.py`
determines the conclusions that it allows.
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
"""Returns which slices may match; None if the index has no information."""


@dataclass(frozen=True)
class Pruner:
    """The indexes of a table applied to one scan's filter."""

    table: TableSnapshot
    request: ScanRequest
    access: MetadataAccess

    @cached_property
    def _question(self) -> PruningContext:
        return PruningContext(self.table, self.request, self.access)

    def partitions(self, paths: Sequence[str]) -> tuple[list[str], list[Step]]:
        """Return the partitions that may have matching rows, by indexes of whole partitions."""
        remaining, steps = list(paths), []
        for partition_type, name in self._kinds:
            for index, look in partition_type.partition_lookups(self._question, name):
                keep = (
                    self.access.use(INSTEAD, partial(look, paths=remaining)) if remaining else None
                )
                if keep is not None:
                    pruned = tuple(p for p, stays in zip(remaining, keep, strict=True) if not stays)
                    steps.append(Step(index, len(remaining), pruned))
                    remaining = [p for p, stays in zip(remaining, keep, strict=True) if stays]
        return remaining, steps

    def slices(self, slices: list[FileSlice]) -> tuple[list[FileSlice], list[Step]]:
        """Return the slices that may have matching rows, by every index for the filter."""
        steps: list[Step] = []
        for index, look in self._lookups() if self._question.conjuncts else ():
            keep = look(slices) if slices else None
            if keep is not None:
                slices, step = prune(index, slices, keep)
                steps.append(step)
        return slices, steps

    @property
    def _kinds(self) -> list[tuple[MetadataPartitionType, str]]:
        """Usable metadata partitions, cheap ones first."""
        listed = [name for name in self.table.config.metadata_partitions if self.access.has(name)]
        return sorted(kinds_of(listed), key=lambda named_type: named_type[0].lookup_cost)

    def _lookups(self) -> Iterator[tuple[str, Keep]]:
        """The indexes with information for the filter, cheap ones first."""
        # If the record index has the keys, buckets cannot prune more.
        if self._question.key_locations is None:
            yield from self._by_bucket()
        for partition_type, name in self._kinds:
            for index, look in partition_type.lookups(self._question, name):
                yield index, partial(self._apply_look, look)

    def _apply_look(self, look: Look, slices: Sequence[FileSlice]) -> list[bool] | None:
        return self.access.use(INSTEAD, lambda table: look(table, slices))

    def _by_bucket(self) -> Iterator[tuple[str, Keep]]:
        table, conjuncts = self.table, self._question.conjuncts
        converted = self._question.converted_columns
        test = simple_buckets(table.config, table.options, conjuncts, converted)
        if test is not None:
            yield "bucket index", lambda slices: prune_by_bucket(table, slices, test)
        rings = hash_rings(
            table.storage, table.timeline, table.config, table.options, conjuncts, converted
        )
        if rings is not None:
            yield "bucket index (hash ring)", lambda slices: prune_by_ring(table, slices, rings)
