"""The command `top`: what happens to tables now, redrawn in the terminal until Ctrl-C."""

from __future__ import annotations

import logging
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from json import dumps
from typing import TYPE_CHECKING, Annotated

import typer

from pyhudi.cli.arguments import number_or_text
from pyhudi.cli.command import FAILED, Call
from pyhudi.cli.printer import live_console, rich_grid, to_json
from pyhudi.clock import SystemClock
from pyhudi.config.formatting import duration_text, printable, size_text

if TYPE_CHECKING:  # Help needs none of it.
    from rich.console import Group as Renderables

    from pyhudi.api.table_activity import CommitSummary, ConsumerLag, PendingWork, TableActivity
    from pyhudi.api.table_watch import TableWatch
    from pyhudi.storage.storage import Storage

_MAX_THREADS = 16
_SECOND = 1000
_SILENT_S = 10
"""A table without an answer for longer than this, and than three intervals, is shown as silent."""
_END_S = 1.0
"""How long the end waits for a thread that is reading a table."""


def top(
    call: Call,
    tables: Annotated[
        list[str], typer.Argument(metavar="TABLE...", help="Locations or names of tables.")
    ],
    interval: Annotated[
        str, typer.Option("--interval", help="Time between two refreshes, such as 500ms or 1m.")
    ] = "2s",
    commits: Annotated[
        int, typer.Option("--commits", "-n", min=0, help="Number of last commits of each table.")
    ] = 5,
    *,
    once: Annotated[
        bool,
        typer.Option("--once", help="Print once; always so with --json or without a terminal."),
    ] = False,
) -> int:
    """Watch writers, services, the lock, consumers and last commits, until Ctrl-C. Only reads.

    Exit code 3 if a table could not be read, when printing once.
    """
    from pyhudi.api.stream import parse_interval  # noqa: PLC0415 - help does not need it
    from pyhudi.api.table_watch import TableWatch  # noqa: PLC0415 - as above

    number = number_or_text(interval)
    seconds = parse_interval(interval if number is None else number, "--interval")
    clock = SystemClock()
    watches = [TableWatch(t, partial(_open, call, t), clock, commits=commits) for t in tables]
    if once or call.out.json or not sys.stdout.isatty():
        return _print_once(call, watches)
    _watch(watches, seconds)
    return 0


def _open(call: Call, location: str) -> tuple[Storage, Mapping[str, str]]:
    """Return the storage of a table and the checked options."""
    from pyhudi.config.options import check_options  # noqa: PLC0415 - help does not need it
    from pyhudi.storage.options import is_table_name  # noqa: PLC0415 - as above
    from pyhudi.storage.storage import Storage  # noqa: PLC0415 - as above

    if is_table_name(location):
        from pyhudi.catalog.named_table import find_table  # noqa: PLC0415 - most have a location

        access = find_table(location).access(call.storage_options, call.options)
        return Storage(access.uri, access.storage_options), access.options
    return Storage(location, call.storage_options), check_options(call.options)


# --- once -----------------------------------------------------------------------------------------


def _print_once(call: Call, watches: Sequence[TableWatch]) -> int:
    from pyhudi.storage.threads import ThreadPool  # noqa: PLC0415 - help does not need it

    with ThreadPool(min(len(watches), _MAX_THREADS)) as pool:
        activities: list[TableActivity] = list(pool.map(lambda watch: watch.observe(), watches))
    if call.out.json:
        for activity in activities:
            sys.stdout.write(f"{dumps(to_json(activity))}\n")
    else:
        for number, section in enumerate(_sections(activities)):
            sys.stdout.write(f"{chr(10) * bool(number)}{section.title}\n")
            call.out.grid(section.columns, right=section.right)
    return FAILED if any(activity.error for activity in activities) else 0


# --- live -----------------------------------------------------------------------------------------


class _Observer(threading.Thread):
    """Observes one table periodically, so that a slow storage does not delay other tables."""

    def __init__(self, watch: TableWatch, seconds: float, on_answer: Callable[[], None]) -> None:
        super().__init__(name="pyhudi-top", daemon=True)
        self.watch = watch
        self.activity = _waiting(watch.label)
        self._seconds = seconds
        self._on_answer = on_answer
        self.ended = threading.Event()

    def run(self) -> None:
        while not self.ended.is_set():
            self.activity = self.watch.observe()
            self._on_answer()
            self.ended.wait(self._seconds)


def _watch(watches: Sequence[TableWatch], seconds: float) -> None:
    """Redraw until Ctrl-C."""
    # Without a handler, Python prints warnings and errors of libraries into the view.
    logging.getLogger().addHandler(logging.NullHandler())
    from rich.live import Live  # noqa: PLC0415 - pipes do not need it

    from pyhudi.storage.threads import start  # noqa: PLC0415 - help does not need it

    changed = threading.Event()
    observers = [_Observer(watch, seconds, changed.set) for watch in watches]
    try:
        with Live(console=live_console(), screen=True, auto_refresh=False) as live:
            for observer in observers:
                start(observer)
            while True:
                changed.wait(max(seconds, 1))
                changed.clear()
                live.update(_renderable(observers, seconds), refresh=True)
    except KeyboardInterrupt:
        return
    finally:
        for observer in observers:
            observer.ended.set()
        for observer in observers:
            if observer.ident is not None:
                observer.join(_END_S / len(observers))


def _renderable(observers: Sequence[_Observer], seconds: float) -> Renderables:
    from rich.console import Group as Renderables  # noqa: PLC0415 - pipes do not need it
    from rich.text import Text  # noqa: PLC0415 - as above

    now, activities = SystemClock().now_ms(), [observer.activity for observer in observers]
    parts: list[object] = []
    for section in _sections(activities, now, max(_SILENT_S, 3 * seconds)):
        texts = [list(map(printable, column)) for column in section.columns]
        parts += [Text(section.title, style="bold"), rich_grid(texts, section.right, _FOLDED)]
        parts.append(Text())
    return Renderables(*parts[:-1])


def _waiting(label: str) -> TableActivity:
    from pyhudi.api.table_activity import TableActivity  # noqa: PLC0415 - help does not need it

    return TableActivity(label, SystemClock().now_ms(), error="waiting for the first answer")


# --- what is displayed ----------------------------------------------------------------------------


_TABLES = {
    "table": False,
    "type": False,
    "state": False,
    "last commit": True,
    "active": True,
    "planned": True,
    "failed": True,
    "lock": False,
    "since clean": True,
    "since compaction": True,
    "small files": True,
}
"""The columns of each grid, and whether they have numbers, which are aligned to the right."""
_FOLDED = ("state", "lock")
"""Columns whose text may be long."""
_PENDING = {
    "table": False,
    "instant": False,
    "action": False,
    "operation": False,
    "status": False,
    "age": True,
    "heartbeat": True,
    "partitions": True,
    "file groups": True,
    "rows": True,
    "process": True,
}
_CONSUMERS = {
    "table": False,
    "consumer": False,
    "position": False,
    "commits behind": True,
    "lag": True,
    "updated": True,
}
_COMMITS = {
    "table": False,
    "instant": False,
    "action": False,
    "operation": False,
    "inserted": True,
    "updated": True,
    "deleted": True,
    "files": True,
    "size": True,
    "duration": True,
    "age": True,
}


@dataclass(frozen=True)
class _Section:
    """A grid under a title."""

    title: str
    heads: Mapping[str, bool]
    rows: Sequence[Sequence[str]]

    @property
    def columns(self) -> list[list[str]]:
        return [[name, *(row[at] for row in self.rows)] for at, name in enumerate(self.heads)]

    @property
    def right(self) -> list[bool]:
        return list(self.heads.values())


def _sections(
    activities: Sequence[TableActivity], now: int = 0, silent_s: float = 0
) -> Iterator[_Section]:
    """Yield the tables, and of all tables pending work, consumers and commits, if there are any.

    now, silent_s: since when a table without an answer is marked; 0 for never.
    """
    names = _short_names([activity.table for activity in activities])
    labeled = list(zip(names, activities, strict=True))
    overview = []
    for name, each in labeled:
        silent_ms = now - each.at_ms
        is_silent = silent_s > 0 and silent_ms > silent_s * _SECOND
        state = f"no answer for {duration_text(silent_ms)}" if is_silent else each.error or "ok"
        overview.append((name, *_overview(each, state)))
    yield _Section("Tables", _TABLES, overview)
    pending = [(name, *_work(work)) for name, each in labeled for work in each.pending]
    consumers = [(name, *_lag(lag)) for name, each in labeled for lag in each.consumers]
    commits = [(name, *_commit(commit)) for name, each in labeled for commit in each.commits]
    for title, heads, rows in (
        ("Pending", _PENDING, pending),
        ("Consumers", _CONSUMERS, consumers),
        ("Last commits", _COMMITS, commits),
    ):
        if rows:
            yield _Section(title, heads, rows)


def _overview(activity: TableActivity, state: str) -> tuple[str, ...]:
    count = Counter(work.status for work in activity.pending)
    health, lock = activity.health, activity.lock
    if health is None or lock is None:
        return ("-", state, *("-",) * (len(_TABLES) - 3))
    newest = activity.commits[0].age_ms if activity.commits else None
    return (
        f"{activity.type} v{activity.version}",
        state,
        _duration(newest),
        _number(count["active"]),
        _number(count["planned"]),
        _number(count["failed"] + count["no heartbeat"]),
        lock.holder or lock.note or "free",
        _number(health.commits_since_clean),
        _number(health.delta_commits_since_compaction) if activity.type == "mor" else "-",
        f"{health.small_files:,} of {health.base_files:,}",
    )


def _work(work: PendingWork) -> tuple[str, ...]:
    return (
        work.instant,
        work.action,
        work.operation or "-",
        work.status,
        _duration(work.age_ms),
        _duration(work.heartbeat_age_ms),
        *map(_number, (work.partitions, work.file_groups, work.rows)),
        "-" if work.process is None else str(work.process),
    )


def _lag(lag: ConsumerLag) -> tuple[str, ...]:
    shard = f" ({lag.shard + 1} of {lag.shards})" if lag.shards > 1 else ""
    return (
        f"{lag.consumer}{shard}",
        lag.position or "the beginning",
        f"{'more than ' if lag.has_archived else ''}{_number(lag.commits_behind)}",
        _duration(lag.lag_ms),
        _duration(lag.updated_age_ms),
    )


def _commit(commit: CommitSummary) -> tuple[str, ...]:
    counts = (commit.rows_inserted, commit.rows_updated, commit.rows_deleted, commit.files)
    return (
        commit.instant,
        commit.action,
        commit.operation or "-",
        *map(_number, counts),
        size_text(commit.bytes),
        _duration(commit.duration_ms),
        _duration(commit.age_ms),
    )


def _number(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"


def _duration(milliseconds: int | None) -> str:
    return "-" if milliseconds is None else duration_text(milliseconds)


def _short_names(labels: Sequence[str]) -> list[str]:
    """Return the last part of each location; the whole if another one ends with the same part."""
    short = [label.rstrip("/").rpartition("/")[2] or label for label in labels]
    count = Counter(short)
    return [name if count[name] == 1 else label for name, label in zip(short, labels, strict=True)]
