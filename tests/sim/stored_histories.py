"""Failing histories of small worlds, stored as regressions in `histories/`.

A file has a world, a schedule, and the rule of the code without which the schedule fails: a
function of `test_mutations.py`, or "" for a bug that was fixed.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.sim.small_kinds import SMALL_KINDS
from tests.sim.small_runs import SmallKind
from tests.sim.small_world import Deviation, Schedule

FOLDER = Path(__file__).parent / "histories"


@dataclass(frozen=True)
class StoredHistory:
    """A schedule that has failed."""

    kind: SmallKind
    schedule: Schedule
    removed_rule: str = ""
    failure: str = ""
    """What went wrong, in one line."""

    @classmethod
    def load(cls, path: Path) -> StoredHistory:
        """Read a file; raise if its world does not exist."""
        fields: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        kinds = {str(kind): kind for kind in SMALL_KINDS}
        schedule = tuple(Deviation(**deviation) for deviation in fields["schedule"])
        return cls(kinds[fields["world"]], schedule, fields["removed_rule"], fields["failure"])

    def store(self, folder: Path = FOLDER) -> Path:
        """Write the history to a file that is named by its content, and return the file."""
        fields = {
            "world": str(self.kind),
            "removed_rule": self.removed_rule,
            "failure": self.failure,
            "schedule": [asdict(deviation) for deviation in self.schedule],
        }
        content = json.dumps(fields, indent=1) + "\n"
        name = self.removed_rule or hashlib.sha256(content.encode()).hexdigest()[:12]
        path = folder / f"{name}-{self.kind}.json"
        folder.mkdir(exist_ok=True)
        path.write_text(content, encoding="utf-8")
        return path
