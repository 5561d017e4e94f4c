"""Daft reads tables of pyhudi as `Inspect.readers` says.

`tests/compat/test_hudi_rs.py` does the same for PyPI's `hudi`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pyhudi.admin.reader_limits import DAFT
from tests.helpers.small_tables import History, cases, is_equal, write


@pytest.mark.parametrize(("axes", "version", "kind", "history"), list(cases()))
def test_daft_reads_as_predicted(
    axes: str, version: int, kind: Any, history: History, tmp_path: Path
) -> None:
    daft = pytest.importorskip("daft")
    table = write(tmp_path / "t", axes, version, kind, history)
    try:
        read = daft.read_hudi(table.uri).to_arrow()
    except Exception:  # noqa: BLE001 - the engine has its own errors
        answer = "no"
    else:
        answer = "yes" if is_equal(read, table) else "wrong"
    assert answer == table.inspect.readers()[DAFT].answer
