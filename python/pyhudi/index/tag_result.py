"""What an index answers: where incoming rows are, or are to go. No rules here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from pyhudi.slices.tagged_rows import Tagged
from pyhudi.slices.write_tasks import FileGroup

NOWHERE = Tagged(pa.array([], pa.int64()), pa.array([], pa.int64()))


@dataclass(frozen=True)
class TagResult:
    """Where incoming rows are, or are to go."""

    tagged: Tagged
    groups: list[FileGroup]
    """What the numbers in `tagged` stand for. Some may be groups that are still to be made."""


def group_numbers(groups: Sequence[FileGroup]) -> Mapping[tuple[str, str], int]:
    """The number of each group by partition path and file id."""
    return {(group.slice.partition, group.slice.file_id): n for n, group in enumerate(groups)}
