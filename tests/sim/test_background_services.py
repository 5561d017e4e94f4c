"""Services in the background next to the writers of a table, one seed after another.

A seed is replayed as in `test_many_writers.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pyhudi.admin import inline_services
from tests.sim.seed_runner import ONE, SEEDS, play_all
from tests.sim.table_kinds import BACKGROUND_SERVICE_KINDS, Kind


@pytest.mark.each_time
@pytest.mark.parametrize("kind", BACKGROUND_SERVICE_KINDS, ids=str)
def test_writers_next_to_services_are_serializable(
    kind: Kind,
    tables: Callable[[Kind], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    due: Counter[str] = Counter()
    execute = inline_services._execute

    def count(name: str, *arguments: Any) -> None:
        due[name] += 1
        execute(name, *arguments)

    monkeypatch.setattr(inline_services, "_execute", count)
    histories = play_all(SEEDS // 3, kind, tables(kind), tmp_path, monkeypatch)
    said = [attempt.said for history in histories for attempt in history.attempts]
    assert ONE or said.count("done") > len(said) // 2
    names = {"cleaning", "archiving", *(["compaction"] if kind.type == "mor" else [])}
    assert ONE or all(due[name] > len(histories) // 10 for name in names), due
