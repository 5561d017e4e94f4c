"""What an engine asks for of a scan or a split: fewer columns, fewer rows. Nothing is read here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pyhudi.schema.predicates import Where, both

if TYPE_CHECKING:
    from pyhudi.api.scan import Scan
    from pyhudi.api.splits import Split


def push_into_scan(
    scan: Scan, columns: Sequence[str], where: Where | None = None, limit: int | None = None
) -> Scan:
    """The scan with some of its columns, and with those of its rows that a filter keeps.

    columns: at least one. where: only for a scan without a limit, which counts before it. limit:
    besides that of the scan.
    """
    request = scan.request
    kept = request.where if where is None else both(where, request.where)
    limits = [most for most in (limit, request.limit) if most is not None]
    return replace(
        scan,
        request=replace(
            request, output=tuple(columns), where=kept, limit=min(limits, default=None)
        ),
    )


def push_into_split(split: Split, columns: Sequence[str], where: Where | None = None) -> Split:
    """As `push_into_scan`."""
    kept = split.task.where if where is None else both(where, split.task.where)
    return with_filter(split, columns, kept)


def with_filter(split: Split, columns: Sequence[str], where: Where | None) -> Split:
    """The split with some of the columns that it needs, and with this filter in place of its own.

    where: looks at columns that the split needs.
    """
    needed = dict.fromkeys((*columns, *(where.columns if where else ())))
    task = replace(split.task, columns=tuple(needed), output=tuple(columns), where=where)
    return replace(split, task=task)
