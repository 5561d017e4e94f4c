"""pyhudi writes to tables with change data capture, and Hudi tells the changes as of its own."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import _native
from pyhudi.timeline import Timeline
from tests.helpers.oracle.client import HudiOracle
from tests.helpers.table_builder import TableBuilder, numbered

VERSION_OF = {"0.15.0": 6, "1.0.2": 8, "1.2.0": 9}
SCHEMA = "id string, city string, v int, ts int"
MODES = ("DATA_BEFORE_AFTER", "DATA_BEFORE", "OP_KEY_ONLY")


def options(release: str, kind: str, mode: str) -> dict[str, str]:
    given = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.table.type": kind,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.partitionpath.field": "city",
        "hoodie.metadata.enable": "false",
        "hoodie.index.type": "SIMPLE",
        "hoodie.compact.inline": "false",
        "hoodie.embed.timeline.server": "false",
        "hoodie.table.cdc.enabled": "true",
        "hoodie.table.cdc.supplemental.logging.mode": mode,
    }
    if VERSION_OF[release] == 6:
        payload = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
        given["hoodie.datasource.write.payload.class"] = payload
    else:
        given["hoodie.write.table.version"] = str(VERSION_OF[release])
    return given


TABLE = TableBuilder(
    {
        "id": (pa.string(), numbered()),
        "city": (pa.string(), lambda number: "rome" if number % 2 else "oslo"),
        "v": (pa.int32(), 1),
        "ts": (pa.int32(), 10),
    },
    partition_by="city",
    order_by="ts",
    first=range(1, 9),
)


HISTORY = (
    ("upsert", TABLE.rows([1, 2, 9], v=2, ts=20)),
    ("upsert", TABLE.rows([1], v=3, ts=5)),  # too late in some tables: it changes nothing there
    ("delete", TABLE.rows([3], v=2, ts=20)),
    ("upsert", TABLE.rows([2, 4, 10], v=4, ts=40)),
    ("delete", TABLE.rows([1, 5, 7, 9], v=2, ts=20)),
)


def changes_by_hudi(hudi: HudiOracle, base: Path) -> list[tuple[str, Any, Any]]:
    found = hudi.read(base, query="cdc", begin="000")["rows"]
    return told(found)


def told(found: Sequence[Mapping[str, Any]]) -> list[tuple[str, Any, Any]]:
    def image(text: Any) -> str:
        value = json.loads(text) if isinstance(text, str) else text
        # Hudi shows its own columns where it finds the changes in a base file.
        data = value and {k: v for k, v in value.items() if not k.startswith("_hoodie_")}
        return json.dumps(data, sort_keys=True)

    return sorted((row["op"], image(row["before"]), image(row["after"])) for row in found)


def both_ways(
    hudi: HudiOracle, tmp_path: Path, kind: str, mode: str
) -> Iterator[tuple[Path, Path]]:
    """Two tables of one history: written by Hudi, and by pyhudi after the first commit."""
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    given = options(hudi.hudi, kind, mode)

    def hudi_writes(operation: str, data: pa.Table) -> None:
        hudi.write(theirs, rows=data.to_pylist(), schema=SCHEMA, operation=operation, options=given)

    hudi_writes("insert", TABLE.rows(range(1, 9), v=1, ts=10))
    shutil.copytree(theirs, ours)
    table = pyhudi.open_table(ours)
    for operation, data in HISTORY:
        # Hudi cannot tell the changes of a rewrite that changed nothing.
        if not (operation == "upsert" and data["ts"][0].as_py() == 5):
            hudi_writes(operation, data)
        if operation == "delete":
            table.delete_keys(data.select(["id", "city"]))
        else:
            table.upsert(data)
    yield theirs, ours


@pytest.mark.parametrize("hudi", list(VERSION_OF), indirect=True)
@pytest.mark.parametrize("mode", MODES)
def test_change_logs_of_rewritten_files(hudi: HudiOracle, tmp_path: Path, mode: str) -> None:
    for theirs, ours in both_ways(hudi, tmp_path, "COPY_ON_WRITE", mode):
        wanted = changes_by_hudi(hudi, theirs)
        assert changes_by_hudi(hudi, ours) == wanted
        assert told(pyhudi.open_table(ours).changes(images="json").to_arrow().to_pylist()) == wanted
        assert log_schemas(ours) == log_schemas(theirs)


@pytest.mark.parametrize("hudi", list(VERSION_OF), indirect=True)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_changes_of_tables_that_pyhudi_makes(
    hudi: HudiOracle, tmp_path: Path, kind: Literal["cow", "mor"], mode: str
) -> None:
    """Hudi tells them, changes the table itself and tells what it changed."""
    base, version = tmp_path / "ours", VERSION_OF[hudi.hudi]
    cdc = {name: value for name, value in options(hudi.hudi, kind, mode).items() if "cdc" in name}
    named = {"hoodie.table.name": "t", **cdc}
    table = TABLE.make(
        base, version=version, kind=kind, index="simple", metadata=False, options=named
    )
    for operation, data in HISTORY:
        if operation == "delete":
            table.delete_keys(data.select(["id", "city"]))
        else:
            table.upsert(data)

    def check(count: int) -> None:
        wanted = changes_by_hudi(hudi, base)
        assert told(pyhudi.open_table(base).changes(images="json").to_arrow().to_pylist()) == wanted
        assert len(wanted) == count

    # Eight inserts, four updates, two inserts, five deletes; appended late rows change nothing.
    check(8 + 3 + 3 + 5)
    given = {**options(hudi.hudi, TYPES[kind], mode), "hoodie.write.auto.upgrade": "false"}
    new = TABLE.rows([2, 12], v=6, ts=60)
    hudi.write(base, rows=new.to_pylist(), schema=SCHEMA, operation="upsert", options=given)
    check(8 + 3 + 3 + 5 + 2)


TYPES = {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}


@pytest.mark.parametrize("hudi", list(VERSION_OF), indirect=True)
def test_changes_of_appended_files(hudi: HudiOracle, tmp_path: Path) -> None:
    for theirs, ours in both_ways(hudi, tmp_path, "MERGE_ON_READ", MODES[0]):
        wanted = changes_by_hudi(hudi, theirs)
        assert changes_by_hudi(hudi, ours) == wanted
        assert told(pyhudi.open_table(ours).changes(images="json").to_arrow().to_pylist()) == wanted


def log_schemas(base: Path) -> set[str]:
    """The schemas in the headers of a table's change logs."""
    table = pyhudi.open_table(base)
    timeline = Timeline.load(table.storage, table.config)
    paths = [
        path
        for instant in timeline.commits
        for stat in timeline.commit_metadata(instant).write_stats
        for path in stat.cdc_stats or ()
    ]
    assert paths
    blocks = [block for path in paths for block in _native.log_blocks(table.storage.native, path)]
    assert {block["type"] for block in blocks} == {"CDC_DATA_BLOCK"}
    # Hudi 1.2 gives the record an empty text.
    return {
        block["header"]["SCHEMA"].replace('"hoodie.t","doc":""', '"hoodie.t"') for block in blocks
    }
