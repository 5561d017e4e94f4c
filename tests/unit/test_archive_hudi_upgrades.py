"""Archives as Apache Hudi 1.2.0 leaves them when it changes a table's version.

An upgrade names files of the history by their first and last row, in whatever order those are; a
downgrade from version 8 to 6 drops the history.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import HudiTable
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import UnsupportedTableFeature
from pyhudi.storage.storage import Storage
from pyhudi.timeline.archive import Archive
from pyhudi.timeline.instant_range import InstantRange

PLAIN = {"hoodie.metadata.enable": "false"}
HISTORY = ".hoodie/timeline/history"


def rows(value: int) -> pa.Table:
    return pa.table({"id": ["a", "b", "c"], "v": [value] * 3})


def made(base: Path, version: int) -> HudiTable:
    """Log files in an old slice."""
    schema = rows(0).schema
    table = pyhudi.create_table(base, schema, key="id", type="mor", version=version, options=PLAIN)
    for value in range(6):
        table.upsert(rows(value))
        if value == 3:
            table.compact()
    return table


def archived(table: HudiTable) -> HudiTable:
    """All but its last commits."""
    table.archive(min_commits=1, max_commits=2)
    return table.refresh()


def past(base: Path) -> Archive:
    storage = Storage(str(base))
    return Archive(storage, TableConfig.load(storage))


def renamed(base: Path, first: str | None = None, last: str | None = None) -> None:
    """Files of the history by other times than those of their rows; by none, turned round."""
    folder = base / HISTORY
    manifest = max(folder.glob("manifest_*"))
    said = json.loads(manifest.read_text())
    for file in said["files"]:
        least, greatest, level = file["fileName"].split("_")
        name = f"{first or greatest}_{last or least}_{level}"
        (folder / file["fileName"]).rename(folder / name)
        file["fileName"] = name
    manifest.write_text(json.dumps(said))


@pytest.mark.parametrize("version", [8, 9])
def test_names_may_be_in_no_order(tmp_path: Path, version: int) -> None:
    before = archived(made(tmp_path, version)).inspect.timeline(archived=True)
    renamed(tmp_path)
    table = pyhudi.open_table(tmp_path, options=PLAIN)
    assert table.inspect.timeline(archived=True).num_rows == before.num_rows
    assert table.scan().to_arrow().num_rows == 3
    table.upsert(rows(9))
    assert table.refresh().check(deep=True).findings == ()


@pytest.mark.parametrize("version", [8, 9])
def test_names_may_say_too_little(tmp_path: Path, version: int) -> None:
    archived(made(tmp_path, version))
    renamed(tmp_path, "00000000000000010", "00000000000000011")
    assert pyhudi.open_table(tmp_path, options=PLAIN).scan().to_arrow().num_rows == 3


@pytest.mark.parametrize("by_completion", [False, True])
def test_spans_find_what_names_leave_out(by_completion: bool, tmp_path: Path) -> None:
    """Names of the last row alone, as cleans come before commits in the logs that Hudi moved."""
    archived(made(tmp_path, 9))
    last = past(tmp_path).instants()[-1].requested
    renamed(tmp_path, last, last)
    found = past(tmp_path).instants()
    first, third = found[0], found[2]
    incremental_range = InstantRange(first.requested, third.requested)
    if by_completion:
        incremental_range = InstantRange(first.completed, third.completed, by_completion=True)
    assert past(tmp_path).instants(incremental_range) == found[1:3]


def test_upgrade_keeps_table_with_unknown_log_files(tmp_path: Path) -> None:
    made(tmp_path, 8).downgrade(6)
    archived(pyhudi.open_table(tmp_path, options=PLAIN))
    shutil.rmtree(tmp_path / ".hoodie/archived")
    table = pyhudi.open_table(tmp_path, options=PLAIN)
    assert table.scan().to_arrow().num_rows == 3
    with pytest.raises(UnsupportedTableFeature, match="neither the timeline") as raised:
        table.upgrade(8)
    assert "KEEP_LATEST_FILE_VERSIONS" in raised.value.hint
    assert table.refresh().config.version.code == 6
    table.compact()
    table.clean(policy="KEEP_LATEST_FILE_VERSIONS", retain=1)
    table.upgrade(8)
    assert table.refresh().scan().to_arrow().num_rows == 3
