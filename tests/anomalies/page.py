"""The generated tables of docs/explanation/anomalies.md, from the file of measured results.

Standard library only: `scripts/generate_docs.py` runs this file by its path.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("results.json")
ROWS = {
    "dirty write": ("Dirty write (G0)", "isolation-of-reads-and-writes"),
    "read of an aborted write": ("Dirty read of an aborted write (G1a)", ""),
    "read of a pending write": ("Dirty read of a pending write (G1a)", ""),
    "intermediate read": ("Intermediate read in a transaction (G1b)", ""),
    "read skew": ("Read skew (G-single)", ""),
    "lost update of one statement": ("Lost update, one statement (P4)", "lost-updates"),
    "lost update of a subquery": ("Lost update, SQL subquery (P4)", "lost-updates"),
    "lost update of a read and an upsert": ("Lost update, read and upsert (P4)", "lost-updates"),
    "write skew of a subquery": ("Write skew, SQL subquery (G2)", "write-skew"),
    "write skew of reads and upserts": ("Write skew, reads and upserts (G2)", "write-skew"),
    "duplicate key of upserts": ("Duplicate key, upserts", "duplicate-keys"),
    "duplicate key of inserts": ("Duplicate key, inserts", "duplicate-keys"),
    "phantom under update": ("Phantom under `update`", "phantoms"),
    "phantom under delete": ("Phantom under `delete`", "phantoms"),
    "non-prefix incremental read": ("Non-prefix incremental read", "incremental-reads"),
    "non-prefix incremental read that waits": (
        'The same, `hollow_commits="block"`',
        "incremental-reads",
    ),
    "read-optimized skew": ("Read-optimized rows of several commits", "read-optimized-reads"),
}
"""Label and section of each scenario."""
BESIDE = {
    "lost update of one statement, Hudi last": ("Lost update, Hudi commits last", "apache-hudi"),
    "duplicate key of upserts, Hudi last": ("Duplicate key, Hudi commits last", "apache-hudi"),
}
"""Scenarios in which Hudi plans first and commits last."""
COLUMNS: dict[str, Callable[[str], bool]] = {
    "Default": lambda mode: mode.startswith("optimistic-storage") and "bucket" not in mode,
    "Other locks": lambda mode: mode.startswith(("optimistic-file", "optimistic-process")),
    "In a bucket": lambda mode: mode.endswith("bucket"),
    "Non-blocking": lambda mode: mode.startswith("non-blocking"),
    "Two `SINGLE_WRITER`": lambda mode: mode.startswith("single-writer"),
    "Hudi as the other client": lambda mode: mode.startswith("hudi"),
}
"""Columns and the modes in them."""
_NOT_MEASURED = "\u2013"


def _load() -> dict[str, dict[str, dict[str, Any]]]:
    results: dict[str, dict[str, dict[str, Any]]] = json.loads(FILE.read_text(encoding="utf-8"))
    return results


def outcome(measured: dict[str, Any]) -> str:
    """The word for what the interleavings of a scenario showed in a mode."""
    if measured["possible_at"]:
        return "possible"
    return "refused" if measured["refusals"] else "prevented"


def cell(outcomes: dict[str, str]) -> str:
    """A cell of the table from the outcomes by mode."""
    words = sorted(set(outcomes.values()))
    if not words:
        return _NOT_MEASURED
    if len(words) == 1:
        return _bold(words[0])
    for part in ("kind", "version"):
        by_part: dict[str, set[str]] = {}
        for mode, word in outcomes.items():
            by_part.setdefault(_parts(mode)[part], set()).add(word)
        if all(len(found) == 1 for found in by_part.values()):
            return "; ".join(
                f"{_bold(word)}: {', '.join(name for name in by_part if word in by_part[name])}"
                for word in words
            )
    return "; ".join(
        f"{_bold(word)}: {', '.join(mode for mode in outcomes if outcomes[mode] == word)}"
        for word in words
    )


def _bold(word: str) -> str:
    return f"**{word}**" if word == "possible" else word


def _parts(mode: str) -> dict[str, str]:
    words = mode.removesuffix("-bucket").split("-")
    kind = {"cow": "copy-on-write", "mor": "merge-on-read"}[words[-1]]
    return {"kind": kind, "version": f"version {words[-2][1:]}"}


def anomaly_table() -> str:
    """The table of anomalies."""
    results = _load()
    lines = [f"| Anomaly | {' | '.join(COLUMNS)} |", "|---" * (len(COLUMNS) + 1) + "|"]
    for name, (label, anchor) in {**ROWS, **BESIDE}.items():
        cells = []
        for has_mode in COLUMNS.values():
            modes = [
                mode
                for mode in sorted(filter(has_mode, results))
                if results[mode].get(name, {}).get("interleavings")
            ]
            cells.append(cell({mode: outcome(results[mode][name]) for mode in modes}))
        title = f"[{label}](#{anchor or 'isolation-of-reads-and-writes'})"
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(lines)


def anomaly_figures() -> str:
    """The number of interleavings of each mode in the last run."""
    results = _load()
    lines = ["| Column | Mode | Interleavings |", "|---|---|---|"]
    for column, has_mode in COLUMNS.items():
        for mode in sorted(mode for mode in results if has_mode(mode)):
            count = sum(measured["interleavings"] for measured in results[mode].values())
            lines.append(f"| {column} | `{mode}` | {count} |")
    return "\n".join(lines)
