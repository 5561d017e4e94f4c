"""Maintains a table: checks its health, runs the most useful services within a budget, repeats.

The work is divided into units that each end with a commit, or change nothing; the budget is checked
between units. A service that another writer is running or completes first is left to it.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from typing import Any, NoReturn

from pyhudi.admin import run_service
from pyhudi.admin.health import REBUILD, SMALL, Advice, Health, assess_health
from pyhudi.clock import Clock, SystemClock
from pyhudi.config.clustering_options import ClusteringOptions
from pyhudi.config.compaction_options import UNBOUNDED, CompactionOptions
from pyhudi.config.formatting import HtmlRepr, count_text
from pyhudi.config.log import warn
from pyhudi.config.option_parsing import parse_duration
from pyhudi.config.retention_options import ArchiveOptions, CleanOptions
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
from pyhudi.write.table_opening import Handle, WritableTable

_UNIT_BYTES = 512 * 1024 * 1024
"""Approximate bytes that one unit reads."""
_TARGET_BYTES = 120 * 1024 * 1024
"""Size of a file that small ones are combined into: `hoodie.parquet.max.file.size`."""
_BYTES = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30}
_SIZE = re.compile(rf"\s*(\d+(?:\.\d+)?)\s*({'|'.join(_BYTES)})\s*", re.IGNORECASE)

Unit = Callable[[], ServiceResult]


@dataclass(frozen=True)
class Budget:
    """The limits of one call. None is no limit."""

    seconds: float | None = None
    """Time after which no unit begins."""
    bytes: int | None = None
    """Bytes that all units together may read; each unit has at least one file group."""

    @classmethod
    def of(cls, budget: float | str | None) -> Budget:
        """Parse seconds as a number, text such as "90s", "10m", "1h", or bytes such as "2 GiB".

        Raises `ConfigError` for anything else.
        """
        if budget is None:
            return cls()
        value: Any = budget
        is_size = False
        if isinstance(budget, str):
            match = _SIZE.fullmatch(budget)
            is_size = match is not None
            value = float(match[1]) * _BYTES[match[2].upper()] if match else parse_duration(budget)
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        if not is_number or not 0 < value <= sys.float_info.max:
            msg = "the budget is neither a duration nor a number of bytes"
            raise ConfigError(msg, hint='Pass 90, "10m" or "2 GiB", for example.')
        return cls(bytes=int(value)) if is_size else cls(seconds=float(value))


@dataclass(frozen=True)
class MaintenanceResult(HtmlRepr):
    """The services that ran for a table, and its health before and after."""

    before: Health
    after: Health
    """Health afterwards; equal to `before` with `dry_run`."""
    done: tuple[ServiceResult, ...]
    left: tuple[str, ...]
    """Useful services that were skipped, each with the reason."""
    duration_ms: int
    dry_run: bool = False

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        lines = [
            f"{done.service}: read {count_text(done.files_read, 'file')}, wrote "
            f"{done.files_written}, removed {done.files_removed}, "
            f"instants {', '.join(done.instants) or '-'}"
            for done in self.done
        ]
        lines = lines or ["nothing was changed"]
        return "\n".join([*lines, *(f"left: {reason}" for reason in self.left), str(self.after)])


def maintain(
    table: WritableTable,
    budget: Budget,
    *,
    memory_limit: int | None = None,
    dry_run: bool = False,
    clock: Clock | None = None,
) -> MaintenanceResult:
    """Run `HudiTable.maintain`."""
    clock = clock or SystemClock()
    handle = Handle.of(table, clock)
    began_ms = clock.ticks_ms()
    before = assess_health(run_service.open_for_service(handle, clock, changes=not dry_run))
    if dry_run:
        advised = tuple(f"{advice.service}: {advice.reason}" for advice in before.advice)
        took = clock.ticks_ms() - began_ms
        return MaintenanceResult(before, before, (), advised, took, dry_run=True)
    done, left = _do_maintenance(handle, before, budget, memory_limit, clock)
    after = (
        assess_health(run_service.open_for_service(handle, clock, changes=False))
        if done
        else before
    )
    took = clock.ticks_ms() - began_ms
    return MaintenanceResult(before, after, tuple(done), tuple(left), took)


def maintain_for_ever(
    table: WritableTable,
    budget: Budget,
    every: Budget,
    *,
    memory_limit: int | None = None,
) -> NoReturn:
    """Maintain the table repeatedly until an interrupt. A failure is a warning."""
    clock = SystemClock()
    if every.seconds is None:
        raise ConfigError("every is not a duration", hint='Pass 300 or "5m", for example.')
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
    began_ms, read = clock.ticks_ms(), 0
    done: list[ServiceResult] = []
    skipped: list[str] = []
    for advice in before.advice:
        if advice.service == REBUILD:
            skipped.append(f"{REBUILD}: {advice.reason}")
        for unit in _units(handle, advice, budget, memory_limit, clock):
            spent = (clock.ticks_ms() - began_ms) / 1000
            if (budget.seconds is not None and spent >= budget.seconds) or (
                budget.bytes is not None and read >= budget.bytes
            ):
                skipped.append(f"{advice.service}: the budget is spent; {advice.reason}")
                break
            result = _execute(unit, advice, skipped)
            if result is not None:
                done.append(result)
                read += result.bytes_read
                skipped += (f"{result.service}: {reason}" for reason in result.left)
    return done, skipped


def _execute(unit: Unit, advice: Advice, skipped: list[str]) -> ServiceResult | None:
    try:
        return unit()
    except CommitConflict as error:
        skipped.append(f"{advice.service}: {without_hint(error)}")
        return None


def _units(
    handle: Handle, advice: Advice, budget: Budget, memory_limit: int | None, clock: Clock
) -> Iterator[Unit]:
    max_bytes = _UNIT_BYTES if budget.bytes is None else min(_UNIT_BYTES, budget.bytes)
    if advice.service == "clean":
        yield partial(run_service.clean, handle, CleanOptions.of(handle.options), clock=clock)
    if advice.service == "archive":
        yield partial(run_service.archive, handle, ArchiveOptions.of(handle.options), clock=clock)
    if advice.service == "compact":
        options = CompactionOptions(strategies=(UNBOUNDED,))
        requests = [CompactionRequest(groups=part) for part in parts(advice.groups, max_bytes)]
        for request in requests or [CompactionRequest(schedule=False)]:
            limited = replace(request, memory_limit=memory_limit)
            yield partial(run_service.compact, handle, limited, options, clock=clock)
    if advice.service == "cluster":
        cluster = partial(run_service.cluster, handle, memory=memory_limit, clock=clock)
        # Small files are combined, rows are sorted as configured, and large files are skipped.
        combining = replace(
            ClusteringOptions.of(handle.options),
            small_file_limit=SMALL,
            target_bytes=_TARGET_BYTES,
            single_group=False,
        )
        if not advice.groups:
            yield partial(cluster, ClusteringRequest(schedule=False), combining)
        sizes: Counter[GroupKey] = Counter()
        for (partition, _), size in advice.groups.items():
            sizes[partition, ""] += size
        for part in parts(sizes, max_bytes):
            selected = tuple(sorted(partition for partition, _ in part))
            yield partial(cluster, ClusteringRequest(), replace(combining, selected=selected))


def parts(groups: Mapping[GroupKey, int], max_bytes: int) -> Iterator[frozenset[GroupKey]]:
    """Yield file groups in parts of at most `max_bytes` bytes, each with at least one group."""
    part: list[GroupKey] = []
    size = 0
    for group, bytes_read in groups.items():
        if part and size + bytes_read > max_bytes:
            yield frozenset(part)
            part, size = [], 0
        part.append(group)
        size += bytes_read
    if part:
        yield frozenset(part)
