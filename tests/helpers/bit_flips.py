"""Flips single bits of a table's files, and says what a deep check and a reader make of each."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyhudi
from pyhudi.errors import HudiError

PROPERTIES = "hoodie.properties"


def kind_of(path: str) -> str:
    """The kind of a file by its path in the table."""
    name = path.rsplit("/", 1)[-1]
    if name.startswith(PROPERTIES):
        return "properties"
    if name.startswith(".hoodie_partition_metadata"):
        return "partition metafile"
    if name.endswith(".hfile"):
        return "HFile"
    if ".log." in name:
        return "metadata log" if "/metadata/" in path else "log"
    if name.endswith(".parquet"):
        return "Parquet"
    return "timeline"


@dataclass(frozen=True)
class Flip:
    """One bit of one file."""

    path: str
    bit: int

    def apply(self, table: Path) -> None:
        """Flip the bit."""
        file = table / self.path
        content = bytearray(file.read_bytes())
        content[self.bit // 8] ^= 1 << self.bit % 8
        file.write_bytes(content)


@dataclass(frozen=True)
class Outcome:
    """What became of one flipped bit."""

    flip: Flip
    is_reported: bool
    """The check has a finding that it did not have before, or raises."""
    is_silent: bool
    """A reader returns other rows without an error."""
    reads: bool
    """Readers raise no error."""


def files_of(table: Path) -> list[str]:
    """All files with content, as paths in the table."""
    paths = (path for path in table.rglob("*") if path.is_file() and path.stat().st_size)
    return sorted(str(path.relative_to(table)) for path in paths)


def sample(table: Path, per_file: int, seed: int) -> Iterator[Flip]:
    """Some bits of each file, in any order within it."""
    chooser = random.Random(seed)
    for path in files_of(table):
        bits = (table / path).stat().st_size * 8
        for bit in sorted(chooser.sample(range(bits), min(per_file, bits))):
            yield Flip(path, bit)


def content(table: Path) -> Any:
    """Rows and files of a table, as its readers see them."""
    opened = pyhudi.open_table(table)
    rows = opened.to_arrow().sort_by("id").to_pylist()
    few = opened.to_arrow(where="v >= 40").sort_by("id").to_pylist()
    keys = opened.get(["k0007", "k0030", "none"]).sort_by("id").to_pylist()
    commits = [str(instant) for instant in opened.history().to_pylist()]
    return rows, few, keys, commits


def outcome(table: Path, flip: Flip, copy: Path, expected: Any) -> Outcome:
    """What becomes of a bit that flips in a copy of the table."""
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(table, copy)
    flip.apply(copy)
    try:
        is_reported = bool(pyhudi.open_table(copy).check(deep=True).findings)
    except HudiError:
        is_reported = True
    try:
        is_equal = content(copy) == expected
    except HudiError:
        return Outcome(flip, is_reported, is_silent=False, reads=False)
    return Outcome(flip, is_reported, is_silent=not is_equal, reads=True)
