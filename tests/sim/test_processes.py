"""Real processes in one table, killed at random; `make soak` runs it longer, and in a bucket."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

import pytest

from tests.helpers.soak import soak

SECONDS = float(os.environ.get("PYHUDI_SOAK_SECONDS", "10"))
WRITERS, READERS = (8, 2) if SECONDS > 60 else (3, 1)


@pytest.mark.timeout(SECONDS * 2 + 300)
@pytest.mark.parametrize(("version", "kind"), [(9, "mor"), (6, "cow")])
def test_killed_processes_lose_and_duplicate_no_row(
    version: int, kind: Literal["cow", "mor"], tmp_path: Path
) -> None:
    found = soak(
        str(tmp_path / "table"),
        SECONDS,
        type_=kind,
        version=version,
        writers=WRITERS,
        readers=READERS,
    )
    assert found.findings == []
    assert found.said
    assert found.reads
