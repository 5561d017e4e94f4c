"""Crashes at every change of storage while a writer changes a table's version."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyhudi.admin.upgrade import change_version
from pyhudi.config.table_config import TableConfig
from pyhudi.storage.storage import Storage
from tests.helpers.tables import unpack
from tests.sim.crash import Handle, rows_of
from tests.sim.states import deaths


@pytest.mark.parametrize(
    ("name", "to"),
    [("v6_mor_part_avro", 8), ("v8_mor_event_time", 9), ("v9_mor_event_time", 6)],
)
def test_upgrade_crash_leaves_one_table_version(name: str, to: int, tmp_path: Path) -> None:
    start = unpack(name, tmp_path / "start")
    wanted = rows_of(start)
    before = TableConfig.load(Storage(str(start))).version.code

    def change(storage: Storage) -> None:
        code = TableConfig.load(storage).version.code
        change_version(Handle(storage), to, up=to >= code, dry_run=False)

    judged = 0
    for n, base in deaths(start, tmp_path, change):
        judged += 1
        assert TableConfig.load(Storage(str(base))).version.code in {before, 6, 8, to}
        assert rows_of(base) == wanted, f"dead at change {n}"
        change(Storage(str(base)))
        assert rows_of(base) == wanted, f"dead at change {n}"
        assert TableConfig.load(Storage(str(base))).version.code == to
    assert judged > 10
