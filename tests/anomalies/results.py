"""The file of measured results: for each mode and scenario what the interleavings showed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("results.json")
Results = dict[str, dict[str, dict[str, Any]]]
"""By mode and scenario."""


def load() -> Results:
    """The committed results."""
    results: Results = json.loads(FILE.read_text(encoding="utf-8"))
    return results


def store(measured: Results) -> None:
    """Replace the results of these modes."""
    results = {**(load() if FILE.exists() else {}), **measured}
    lines = [
        f"{json.dumps(mode)}: {{\n"
        + ",\n".join(
            f"  {json.dumps(scenario)}: {json.dumps(outcome)}"
            for scenario, outcome in results[mode].items()
        )
        + "\n}"
        for mode in sorted(results)
    ]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
