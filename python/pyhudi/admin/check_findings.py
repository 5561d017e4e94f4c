"""The findings of a check as a result; other modules run the checks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

import pyarrow as pa

from pyhudi.config.formatting import HtmlRepr, count_text
from pyhudi.errors import without_hint

Severity = Literal["error", "warning"]

_LINES = 10
"""Maximum number of lines of a result's short text."""

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
    """One difference between the timeline, storage and the metadata table."""

    kind: str
    """Type of the finding: see the table of types in `docs/reference/check-findings.md`."""
    severity: Severity
    """error: readers or writers, Hudi's or pyhudi's, return or write wrong data. warning: they
    ignore it."""
    partition: str = ""
    """Partition path, "" in a table without partitions and if no partition is concerned."""
    item: str = ""
    """The file's name, the record key, the instant or the metadata table's partition."""
    expected: str = ""
    found: str = ""

    def __str__(self) -> str:
        path = f"{self.partition}/{self.item}" if self.partition else self.item
        sides = [f"expected {self.expected}"] if self.expected else []
        sides += [f"found {self.found}"] if self.found else []
        return f"{self.severity}: {self.kind} {path}" + (f": {', '.join(sides)}" if sides else "")


def damage_finding(partition: str, item: str, error: Exception, expected: str = "") -> Finding:
    """Return the finding for a file that cannot be read."""
    return Finding("damaged_file", "error", partition, item, expected, without_hint(error))


@dataclass(frozen=True)
class CheckResult(HtmlRepr):
    """The findings of a check, in order; false as a condition if it has none."""

    findings: Sequence[Finding]
    deep: bool
    """Whether contents of files were checked too."""
    partitions: int
    """Number of data partitions that were checked."""
    files: int
    """Number of data files that were checked."""
    repaired: Sequence[Finding] = ()
    """Findings whose cause was removed."""
    unverified: Sequence[str] = ()
    """Paths of files without checksums of all their bytes: flipped bits in them may stay unnoticed.
    Only a deep check fills it."""

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings of severity "error"."""
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
        scope = f"{count_text(self.files, 'file')} in {count_text(self.partitions, 'partition')}"
        outcome = "no difference"
        if self.findings:
            errors = count_text(len(self.errors), "error")
            outcome = f"{count_text(len(self.findings), 'finding')}, {errors}"
        repaired = [f"removed: {finding}" for finding in self.repaired]
        lines = [f"{scope}: {outcome}", *map(str, self.findings), *repaired]
        if self.unverified:
            files = count_text(len(self.unverified), "file")
            lines.append(f"{files} without checksums: flipped bits in them may stay unnoticed")
        return "\n".join(lines)

    def to_arrow(self) -> pa.Table:
        """Return columns kind, severity, partition, item, expected, found."""
        return pa.Table.from_pylist([asdict(finding) for finding in self.findings], _SCHEMA)


def in_order(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return errors first, then by type and location, each finding once."""
    rank = {"error": 0, "warning": 1}
    return tuple(
        sorted(
            set(findings),
            key=lambda finding: (
                rank[finding.severity],
                finding.kind,
                finding.partition,
                finding.item,
            ),
        )
    )
