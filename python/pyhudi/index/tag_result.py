"""The result of tagging: the locations of incoming rows. No rules here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from pyhudi.slices.tagged_rows import Tagged
from pyhudi.slices.write_tasks import FileGroup

NOWHERE = Tagged(pa.array([], pa.int64()), pa.array([], pa.int64()))


@dataclass(frozen=True)
class TagResult:
    """The locations of incoming rows, existing or new."""

    tagged: Tagged
    groups: list[FileGroup]
    """The groups by their numbers in `tagged`. Some may not exist yet."""


def group_numbers(groups: Sequence[FileGroup]) -> Mapping[tuple[str, str], int]:
    """Return the number of each group by partition path and file id."""
    return {(group.slice.partition, group.slice.file_id): n for n, group in enumerate(groups)}
