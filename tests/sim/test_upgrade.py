"""A writer that dies at any change of storage while it changes a table's version."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pyhudi.admin.upgrade import change_version
from pyhudi.config.table_config import TableConfig
from pyhudi.storage.storage import Storage
from tests.helpers.tables import unpack
from tests.sim.crash import CrashingStorage, Handle, Killed, rows_of


@pytest.mark.parametrize(
    ("name", "to"),
    [("v6_mor_part_avro", 8), ("v8_mor_event_time", 9), ("v9_mor_event_time", 6)],
)
def test_the_table_is_of_one_version_or_the_other(name: str, to: int, tmp_path: Path) -> None:
    start = unpack(name, tmp_path / "start")
    wanted = rows_of(start)
    before = TableConfig.load(Storage(str(start))).version.code
    dies_at, done = 0, False
    while not done:
        dies_at += 1
        base = tmp_path / "table"
        shutil.copytree(start, base)
        storage = CrashingStorage(str(base), dies_at)
        try:
            change_version(Handle(storage), to, up=to > before, dry_run=False)
            done = True
        except Killed:
            assert TableConfig.load(Storage(str(base))).version.code in {before, 6, 8, to}
            assert rows_of(base) == wanted, f"dead at change {dies_at}"
            code = TableConfig.load(Storage(str(base))).version.code
            change_version(Handle(Storage(str(base))), to, up=to >= code, dry_run=False)
        assert rows_of(base) == wanted
        assert TableConfig.load(Storage(str(base))).version.code == to
        shutil.rmtree(base)
    assert dies_at > 10
