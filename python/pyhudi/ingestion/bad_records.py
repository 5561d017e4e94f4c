"""Records that are not rows of the table: counted, and written to files of JSON lines."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import pyarrow as pa

from pyhudi.config.formatting import count_text
from pyhudi.errors import HudiError, SchemaMismatch, without_hint
from pyhudi.storage.storage import Storage

_ERRORS = (HudiError, pa.ArrowException)
_NOISE = re.compile(r"^Could not open CSV input source '.*?': (Invalid: )?| in row 0$|Row #\d+: ")
"""Parts of messages about the one record that was read."""
_SHOWN = 3
"""Number of bad records in an error."""


@dataclass(frozen=True)
class BadRecord:
    """A record that is not a row."""

    reason: str
    source: str
    """The origin: a file, or a topic with partition and offset."""
    record: str
    """The record as text."""


class BadRecordSink:
    """Takes the bad records of all batches, up to a maximum number."""

    def __init__(self, folder: Storage | None, max_records: int) -> None:
        """folder: of a file for each batch; None to keep none."""
        self._folder = folder
        self._max = max_records
        self.count = 0
        """Number of bad records of committed batches."""
        self._pending = 0

    def put(self, source: str, checkpoint: str, records: Sequence[BadRecord]) -> None:
        """Write the bad records of a batch. A repeated batch replaces its file.

        Raises `SchemaMismatch` if there are more than the maximum.
        """
        self.check(records)
        self._pending = len(records)
        if self._folder is None or not records:
            return
        name = sha256(f"{source}\n{checkpoint}".encode()).hexdigest()[:16]
        lines = (
            json.dumps({"reason": bad.reason, "source": bad.source, "record": bad.record})
            for bad in records
        )
        self._folder.put(f"bad-{name}.jsonl", "".join(f"{line}\n" for line in lines).encode())

    def check(self, records: Sequence[BadRecord]) -> None:
        """Raise `SchemaMismatch` if there are more bad records than the maximum."""
        total = self.count + len(records)
        if total <= self._max:
            return
        shown = "".join(f"\n  {bad.source}: {bad.reason}" for bad in records[:_SHOWN])
        raise SchemaMismatch(
            f"{count_text(total, 'bad record')}, and max_bad_records is {self._max}:{shown}",
            hint="Correct the source, or raise max_bad_records to leave bad records out; "
            "bad_records= names a directory that keeps them.",
        )

    def confirm(self) -> None:
        """Count the bad records of the last batch, which is committed."""
        self.count += self._pending
        self._pending = 0


def without_bad_rows(
    count: int,
    convert: Callable[[int, int], Any],
    reject: Callable[[int, str], None],
) -> list[Any]:
    """Convert ranges of rows, halved until those that fail are single rows.

    Args:
        count: number of rows.
        convert: converts the rows from one number to before another.
        reject: takes the number of a row that does not convert, and the reason.

    Returns:
        The results for the ranges without bad rows, in their order.
    """
    results = []
    ranges = [(0, count)] if count else []
    while ranges:
        start, end = ranges.pop()
        try:
            results.append(convert(start, end))
        except _ERRORS as error:
            if end - start == 1:
                reject(start, _NOISE.sub("", without_hint(error)))
                continue
            middle = (start + end) // 2
            ranges += [(middle, end), (start, middle)]
    return results
