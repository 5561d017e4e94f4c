"""Commands that run table services. They change no rows, except `expire`."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

from pyhudi.cli.arguments import (
    DryRun,
    Execute,
    Location,
    Memory,
    Partitions,
    Schedule,
    number_or_text,
    parse_names,
)
from pyhudi.cli.command import Call


class Layout(str, Enum):
    """Order of rows for several sort columns."""

    linear = "linear"
    zorder = "zorder"
    hilbert = "hilbert"


def maintain(
    call: Call,
    table: Location,
    budget: Annotated[
        str | None,
        typer.Option("--budget", help="When to stop: after 90 seconds, 10m, 1h, or 2GiB read."),
    ] = None,
    every: Annotated[
        str | None, typer.Option("--every", help="Repeat forever with this pause, such as 5m.")
    ] = None,
    memory_limit: Memory = None,
    *,
    dry_run: DryRun = False,
) -> None:
    """Run the services that are due, the most useful first."""
    result = call.open(table).maintain(
        number_or_text(budget),
        every=number_or_text(every),
        memory_limit=memory_limit,
        dry_run=dry_run,
        progress=call.progress,
    )
    if call.out.json or not call.out.quiet:
        call.out.text(str(result), result)


def compact(
    call: Call,
    table: Location,
    partition: Partitions = None,
    strategy: Annotated[
        str | None, typer.Option("--strategy", help="Compaction strategy: one of Hudi's classes.")
    ] = None,
    instant: Annotated[
        str | None, typer.Option("--instant", help="Execute only this pending compaction.")
    ] = None,
    memory_limit: Memory = None,
    *,
    schedule: Schedule = True,
    execute: Execute = True,
    dry_run: DryRun = False,
) -> None:
    """Merge log files of a merge-on-read table into base files."""
    result = call.open(table).compact(
        partitions=partition or None,
        strategy=strategy,
        schedule=schedule,
        execute=execute,
        instant=instant,
        dry_run=dry_run,
        memory_limit=memory_limit,
        progress=call.progress,
    )
    call.out.result(result)


def log_compact(
    call: Call,
    table: Location,
    partition: Partitions = None,
    min_log_files: Annotated[
        int | None,
        typer.Option("--min-log-files", help="Minimum number of log files in a file group."),
    ] = None,
    *,
    schedule: Schedule = True,
    execute: Execute = True,
    dry_run: DryRun = False,
) -> None:
    """Merge the log files of a file group into one."""
    result = call.open(table).log_compact(
        partitions=partition or None,
        min_log_files=min_log_files,
        schedule=schedule,
        execute=execute,
        dry_run=dry_run,
        progress=call.progress,
    )
    call.out.result(result)


def cluster(
    call: Call,
    table: Location,
    sort_by: Annotated[
        str | None, typer.Option("--sort-by", metavar="A,B", help="Columns to sort the rows by.")
    ] = None,
    layout: Annotated[
        Layout | None, typer.Option("--layout", help="How to order rows by several columns.")
    ] = None,
    partition: Partitions = None,
    memory_limit: Memory = None,
    *,
    schedule: Schedule = True,
    execute: Execute = True,
    dry_run: DryRun = False,
) -> None:
    """Rewrite small files into larger, sorted file groups."""
    result = call.open(table).cluster(
        sort_by=parse_names(sort_by),
        layout=None if layout is None else layout.value,
        partitions=partition or None,
        schedule=schedule,
        execute=execute,
        dry_run=dry_run,
        memory_limit=memory_limit,
        progress=call.progress,
    )
    call.out.result(result)


def clean(
    call: Call,
    table: Location,
    policy: Annotated[
        str | None,
        typer.Option("--policy", help="KEEP_LATEST_COMMITS, …_BY_HOURS, …_FILE_VERSIONS."),
    ] = None,
    retain: Annotated[
        int | None, typer.Option("--retain", help="Number of commits, hours or versions to retain.")
    ] = None,
    *,
    dry_run: DryRun = False,
) -> None:
    """Delete file versions that are no longer retained."""
    result = call.open(table).clean(
        policy=policy, retain=retain, dry_run=dry_run, progress=call.progress
    )
    call.out.result(result)


def archive(
    call: Call,
    table: Location,
    min_commits: Annotated[
        int | None,
        typer.Option("--min-commits", help="Number of commits to keep on the active timeline."),
    ] = None,
    max_commits: Annotated[
        int | None,
        typer.Option("--max-commits", help="Number of commits above which archiving begins."),
    ] = None,
    *,
    dry_run: DryRun = False,
) -> None:
    """Move the oldest instants from the active timeline to the archive."""
    result = call.open(table).archive(
        min_commits=min_commits, max_commits=max_commits, dry_run=dry_run
    )
    call.out.result(result)


def expire(
    call: Call,
    table: Location,
    days: Annotated[
        int | None,
        typer.Option("--days", help="Drop partitions without a write for this number of days."),
    ] = None,
    *,
    by_creation: Annotated[
        bool | None,
        typer.Option(
            "--by-creation/--by-write", help="Count days since the creation or the last write."
        ),
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Drop partitions without a recent write."""
    result = call.open(table).expire_partitions(days, by_creation=by_creation, dry_run=dry_run)
    call.out.result(result)
