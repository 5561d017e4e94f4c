"""Pushes columns, filters and limits of an engine into a scan or a split. Nothing is read here."""

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
    """Return the scan with some of its columns, and with the rows that a filter keeps.

    columns: at least one. where: only for a scan without a limit, because the limit applies first.
    limit: an additional limit.
    """
    request = scan.request
    combined = request.where if where is None else both(where, request.where)
    limits = [max_rows for max_rows in (limit, request.limit) if max_rows is not None]
    return replace(
        scan,
        request=replace(
            request, output=tuple(columns), where=combined, limit=min(limits, default=None)
        ),
    )


def push_into_split(split: Split, columns: Sequence[str], where: Where | None = None) -> Split:
    """Return a split with columns and a filter, as `push_into_scan` does."""
    combined = split.task.where if where is None else both(where, split.task.where)
    return with_filter(split, columns, combined)


def with_filter(split: Split, columns: Sequence[str], where: Where | None) -> Split:
    """Return the split with some of the columns that it needs, and with this filter only.

    where: uses only columns that the split needs.
    """
    needed = dict.fromkeys((*columns, *(where.columns if where else ())))
    task = replace(split.task, columns=tuple(needed), output=tuple(columns), where=where)
    return replace(split, task=task)
