"""Counts what simulations run, for `docs/explanation/reliability.md`.

Each process of a run appends its counts to a file in the folder PYHUDI_COUNTS. After a run that
passed, this program adds them up, and replaces the run of the same name in `counts.json`:

    python -m tests.sim.counts NAME COMMAND
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

COUNTS = Path(__file__).with_name("counts.json")
FOLDER = os.environ.get("PYHUDI_COUNTS", "")


def note_run(unit: str, kind: object, counts: Counter[str]) -> None:
    """Count one run. unit: what a run is: a seed or a schedule."""
    if FOLDER:
        path = Path(FOLDER) / f"{os.getpid()}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps([str(kind), {unit: 1, **counts}]) + "\n")


def read_runs(folder: Path) -> Iterator[tuple[str, Counter[str]]]:
    """Read what all processes have noted: kinds of tables and counts."""
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            kind, counts = json.loads(line)
            yield kind, Counter(counts)


def replace_run(name: str, command: str, folder: Path, path: Path = COUNTS) -> None:
    """Write the sums by kind of table as the last run of a name."""
    kinds: dict[str, Counter[str]] = {}
    for kind, counts in read_runs(folder):
        kinds.setdefault(kind, Counter()).update(counts)
    git = ["git", "rev-parse", "--short=12", "HEAD"]
    commit = subprocess.run(git, capture_output=True, text=True, check=True)  # noqa: S603
    runs = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    runs[name] = {
        "command": command,
        "commit": commit.stdout.strip(),
        "date": datetime.now(timezone.utc).date().isoformat(),
        "kinds": {kind: dict(sorted(kinds[kind].items())) for kind in sorted(kinds)},
    }
    path.write_text(json.dumps(dict(sorted(runs.items())), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    replace_run(sys.argv[1], sys.argv[2], Path(FOLDER))
    sys.stdout.write(f"{sys.argv[1]}: counted in tests/sim/counts.json\n")
