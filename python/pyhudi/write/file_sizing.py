"""Which files new rows go to: small ones while they have room, then new ones. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pyhudi.slices.write_tasks import FileGroup, WriteTarget


def small_groups(target: WriteTarget, groups: Sequence[FileGroup], partition: str) -> list[int]:
    """Numbers of the file groups of a partition that take inserts, smallest first."""
    options = target.options
    small = [
        number
        for number, group in enumerate(groups)
        if group.slice.partition == partition
        and group.takes_inserts
        and group.slice.size < options.small_file_limit
    ]
    small.sort(key=lambda number: (groups[number].slice.size, groups[number].slice.file_id))
    return small[: options.small_slices_per_partition] if target.merge_on_read else small


def pack(
    target: WriteTarget,
    groups: Sequence[FileGroup],
    small: Iterable[int],
    numbers: Any,
    row_bytes: int,
) -> Iterator[tuple[int | None, Any]]:
    """Slices of rows for each small file group while it has room, then for new ones (None).

    numbers: the rows, or their numbers.
    """
    options = target.options
    room_of_new = options.insert_split_rows or max(options.max_file_size // row_bytes, 1)
    start = 0
    for number in small:
        room = max(options.max_file_size - groups[number].slice.size, 0) // row_bytes
        if room and start < len(numbers):
            yield number, numbers.slice(start, room)
            start += room
    while start < len(numbers):
        yield None, numbers.slice(start, room_of_new)
        start += room_of_new
