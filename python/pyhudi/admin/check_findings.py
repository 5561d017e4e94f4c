"""What a check of a table found. Facts only; how they are found is the other modules' part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

import pyarrow as pa

from pyhudi.config.html_repr import HtmlRepr

Severity = Literal["error", "warning"]

_LINES = 10
"""Of a result's short form."""

_SCHEMA = pa.schema(
    [
        ("kind", pa.string()),
        ("severity", pa.string()),
        ("partition", pa.string()),
        ("item", pa.string()),
        ("expected", pa.string()),
        ("found", pa.string()),
    ]
)


@dataclass(frozen=True)
class Finding:
    """One difference."""

    kind: str
    """What it is: see the table of kinds in `docs/checking.md`."""
    severity: Severity
    """error: readers or writers, Hudi's or pyhudi's, go wrong by it. warning: they pass it over."""
    partition: str = ""
    """Partition path, "" in a table without partitions and where none is concerned."""
    item: str = ""
    """The file's name, the record key, the instant or the metadata table's partition."""
    expected: str = ""
    found: str = ""

    def __str__(self) -> str:
        place = f"{self.partition}/{self.item}" if self.partition else self.item
        sides = [f"expected {self.expected}"] if self.expected else []
        sides += [f"found {self.found}"] if self.found else []
        return f"{self.severity}: {self.kind} {place}" + (f": {', '.join(sides)}" if sides else "")


@dataclass(frozen=True)
class CheckResult(HtmlRepr):
    """What a check found: false as a condition when that is nothing, else its findings in order."""

    findings: Sequence[Finding]
    deep: bool
    """Whether contents of files were looked at too."""
    partitions: int
    """Data partitions that were looked at."""
    files: int
    """Data files that were looked at."""
    repaired: Sequence[Finding] = ()
    """What was there before, and was removed."""

    @property
    def ok(self) -> bool:
        """Nothing was found."""
        return not self.findings

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that are no mere warnings."""
        return tuple(finding for finding in self.findings if finding.severity == "error")

    def __bool__(self) -> bool:
        return bool(self.findings)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def __repr__(self) -> str:
        lines = str(self).splitlines()
        more = len(lines) - _LINES
        return "\n".join(lines if more <= 1 else [*lines[:_LINES], f"and {more} more"])

    def __str__(self) -> str:
        looked = f"{self.files} files in {self.partitions} partitions"
        said = "no difference"
        if self.findings:
            said = f"{len(self.findings)} findings, {len(self.errors)} of them errors"
        repaired = [f"removed: {finding}" for finding in self.repaired]
        return "\n".join([f"{looked}: {said}", *map(str, self.findings), *repaired])

    def to_arrow(self) -> pa.Table:
        """Columns kind, severity, partition, item, expected, found."""
        return pa.Table.from_pylist([asdict(finding) for finding in self.findings], _SCHEMA)


def in_order(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Errors first, then by kind and place; what was found twice comes once."""
    rank = {"error": 0, "warning": 1}
    return tuple(
        sorted(
            set(findings),
            key=lambda found: (rank[found.severity], found.kind, found.partition, found.item),
        )
    )
