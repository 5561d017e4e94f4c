"""Keeping a table good: looks at it, does what is worth most within a budget, looks again.

Work is done in units that each end with a commit, or leave nothing: a unit is what fits between two
looks at the budget. A service that another writer is at, or is faster with, is left to it.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from typing import Any, NoReturn

from pyhudi.admin import run_service
from pyhudi.admin.health import REBUILD, SMALL, Advice, Health, look
from pyhudi.clock import Clock, SystemClock
from pyhudi.config.archive_options import ArchiveOptions
from pyhudi.config.clean_options import CleanOptions
from pyhudi.config.clustering_options import ClusteringOptions
from pyhudi.config.compaction_options import UNBOUNDED, CompactionOptions
from pyhudi.config.html_repr import HtmlRepr
from pyhudi.config.log import warn
from pyhudi.errors import (
    CommitConflict,
    ConfigError,
    HudiError,
    MaintenanceWarning,
    without_hint,
)
from pyhudi.services.clustering import ClusteringRequest
from pyhudi.services.result import ServiceResult
from pyhudi.services.table_compaction import CompactionRequest
from pyhudi.slices.slice_builder import GroupKey
from pyhudi.write.write_context import Handle, WritableTable

_UNIT = 512 * 1024 * 1024
"""Bytes that one unit reads, about."""
_JOINED = 120 * 1024 * 1024
"""Bytes of a file that small ones are joined into: `hoodie.parquet.max.file.size`."""
_SECONDS = {"s": 1, "m": 60, "h": 3600}
_BYTES = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30}

Unit = Callable[[], ServiceResult]


@dataclass(frozen=True)
class Budget:
    """What one call may take. None is no bound."""

    seconds: float | None = None
    """No unit begins after them."""
    bytes: int | None = None
    """To be read by all units, each of which has one file group at least."""

    @classmethod
    def of(cls, given: float | str | None) -> Budget:
        """Seconds as a number, or as text such as "90s", "10m", "1h"; bytes such as "2 GiB".

        Raises `ConfigError` for anything else.
        """
        if given is None:
            return cls()
        value: Any = given
        is_size = False
        if isinstance(given, str):
            found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]+)\s*", given)
            number, unit = found.groups() if found else ("0", "")
            is_size = unit.upper() in _BYTES
            value = float(number) * (_BYTES.get(unit.upper()) or _SECONDS.get(unit.lower(), 0))
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        if not is_number or not 0 < value <= sys.float_info.max:
            msg = "the budget is neither a duration nor a number of bytes"
            raise ConfigError(msg, hint='Give 90, "10m" or "2 GiB", for example.')
        return cls(bytes=int(value)) if is_size else cls(seconds=float(value))


@dataclass(frozen=True)
class MaintenanceResult(HtmlRepr):
    """What was done for a table, and how it was before and after."""

    before: Health
    after: Health
    """As before with `dry_run`."""
    done: tuple[ServiceResult, ...]
    left: tuple[str, ...]
    """What is worth doing and was not done, each with the reason."""
    duration_ms: int
    dry_run: bool = False

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        did = [f"{done.service}: {_did(done)}" for done in self.done] or ["nothing was changed"]
        return "\n".join([*did, *(f"left: {reason}" for reason in self.left), str(self.after)])


def _did(done: ServiceResult) -> str:
    written = f"read {done.files_read} files, wrote {done.files_written}"
    return f"{written}, removed {done.files_removed}, instants {', '.join(done.instants) or '-'}"


def maintain(
    table: WritableTable,
    budget: Budget,
    *,
    memory_limit: int | None = None,
    dry_run: bool = False,
    clock: Clock | None = None,
) -> MaintenanceResult:
    """See `HudiTable.maintain`."""
    clock = clock or SystemClock()
    handle = Handle.of(table, clock)
    began_ms = clock.now_ms()
    before = look(run_service.open_for_service(handle, clock, changes=not dry_run))
    if dry_run:
        advised = tuple(f"{advice.service}: {advice.reason}" for advice in before.advice)
        took = clock.now_ms() - began_ms
        return MaintenanceResult(before, before, (), advised, took, dry_run=True)
    done, left = _do_maintenance(handle, before, budget, memory_limit, clock)
    after = look(run_service.open_for_service(handle, clock, changes=False)) if done else before
    took = clock.now_ms() - began_ms
    return MaintenanceResult(before, after, tuple(done), tuple(left), took)


def maintain_for_ever(
    table: WritableTable,
    budget: Budget,
    every: Budget,
    *,
    memory_limit: int | None = None,
    clock: Clock | None = None,
) -> NoReturn:
    """Maintains the table again and again, until an interrupt. What fails is a warning."""
    clock = clock or SystemClock()
    if every.seconds is None:
        raise ConfigError("every is not a duration", hint='Give 300 or "5m", for example.')
    while True:
        try:
            maintain(table, budget, memory_limit=memory_limit, clock=clock)
        except HudiError as error:
            text = f"{table.storage.uri}: maintenance failed and will be retried: {error}"
            warn(text, MaintenanceWarning)
        clock.sleep(every.seconds)


def _do_maintenance(
    handle: Handle, before: Health, budget: Budget, memory_limit: int | None, clock: Clock
) -> tuple[list[ServiceResult], list[str]]:
    began_ms, read = clock.now_ms(), 0
    done: list[ServiceResult] = []
    left: list[str] = []
    for advice in before.advice:
        if advice.service == REBUILD:
            left.append(f"{REBUILD}: {advice.reason}")
        for unit in _units(handle, advice, budget, memory_limit, clock):
            spent = (clock.now_ms() - began_ms) / 1000
            if (budget.seconds is not None and spent >= budget.seconds) or (
                budget.bytes is not None and read >= budget.bytes
            ):
                left.append(f"{advice.service}: the budget is spent; {advice.reason}")
                break
            result = _execute(unit, advice, left)
            if result is not None:
                done.append(result)
                read += result.bytes_read
                left += (f"{result.service}: {reason}" for reason in result.left)
    return done, left


def _execute(unit: Unit, advice: Advice, left: list[str]) -> ServiceResult | None:
    try:
        return unit()
    except CommitConflict as error:
        left.append(f"{advice.service}: {without_hint(error)}")
        return None


def _units(
    handle: Handle, advice: Advice, budget: Budget, memory_limit: int | None, clock: Clock
) -> Iterator[Unit]:
    options = CompactionOptions(strategies=(UNBOUNDED,))
    most = _UNIT if budget.bytes is None else min(_UNIT, budget.bytes)
    if advice.service == "clean":
        yield partial(run_service.clean, handle, CleanOptions.of(handle.options), clock=clock)
    if advice.service == "archive":
        yield partial(run_service.archive, handle, ArchiveOptions.of(handle.options), clock=clock)
    if advice.service == "compact":
        if not advice.groups:
            pending = CompactionRequest(schedule=False, memory_limit=memory_limit)
            yield partial(run_service.compact, handle, pending, options, clock=clock)
        for groups in parts(advice.groups, most):
            asked = CompactionRequest(groups=groups, memory_limit=memory_limit)
            yield partial(run_service.compact, handle, asked, options, clock=clock)
    if advice.service == "cluster":
        if not advice.groups:
            waiting = ClusteringRequest(schedule=False)
            by = _joining(handle.options, None)
            yield partial(
                run_service.cluster, handle, waiting, by, memory=memory_limit, clock=clock
            )
        sizes: Counter[GroupKey] = Counter()
        for (partition, _), size in advice.groups.items():
            sizes[partition, ""] += size
        for whole in parts(sizes, most):
            by = _joining(handle.options, {partition for partition, _ in whole})
            wanted = ClusteringRequest()
            yield partial(run_service.cluster, handle, wanted, by, memory=memory_limit, clock=clock)


def _joining(options: Mapping[str, str], partitions: Iterable[str] | None) -> ClusteringOptions:
    """Joins small files, and leaves alone what is large enough; rows sorted as the options say."""
    chosen = replace(
        ClusteringOptions.of(options),
        small_file_limit=SMALL,
        target_bytes=_JOINED,
        single_group=False,
    )
    return chosen if partitions is None else replace(chosen, selected=tuple(sorted(partitions)))


def parts(groups: Mapping[GroupKey, int], most: int) -> Iterator[frozenset[GroupKey]]:
    """File groups in parts of so many bytes, each of one group at least."""
    held: list[GroupKey] = []
    size = 0
    for group, bytes_read in groups.items():
        if held and size + bytes_read > most:
            yield frozenset(held)
            held, size = [], 0
        held.append(group)
        size += bytes_read
    if held:
        yield frozenset(held)
