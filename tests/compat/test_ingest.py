"""Apache Hudi reads ingested tables and their checkpoints, and pyhudi continues Hudi's."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import pyhudi
from pyhudi import FileSource, ingest
from pyhudi.config.streamer_checkpoint import KEY_V1, KEY_V2
from tests.helpers.oracle.client import HudiOracle
from tests.helpers.pairwise import pairwise

T0 = 1_700_000_000_000
RELEASES = [(6, "0.15.0"), (6, "1.2.0"), (8, "1.0.2"), (9, "1.2.0")]
CASES = [(*release, kind) for release, kind in pairwise(RELEASES, ("cow", "mor"))]


def land(folder: Path, number: int) -> None:
    """A file of two rows, of which the second one is in the file before, too."""
    path = folder / f"{number}.json"
    rows = [{"id": number, "ts": number}, {"id": number - 1, "ts": number}]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    os.utime(path, ns=((T0 + number) * 1_000_000,) * 2)


@pytest.mark.parametrize(("version", "hudi", "kind"), CASES, indirect=["hudi"])
def test_hudi_and_ingest_continue_checkpoints_of_each_other(
    version: int, hudi: HudiOracle, kind: Any, tmp_path: Path
) -> None:
    base, landing = tmp_path / "t", tmp_path / "landing"
    landing.mkdir()
    name, checkpoint_class = (
        (KEY_V1, "StreamerCheckpointV1") if version == 6 else (KEY_V2, "StreamerCheckpointV2")
    )
    source = FileSource(landing)

    def check(expected: int, ids: set[int]) -> None:
        found = hudi.streamer_checkpoint(base)
        assert found == {"class": checkpoint_class, "key": str(T0 + expected)}
        rows = {row["id"]: row["ts"] for row in hudi.read(base)["rows"]}
        ours = pyhudi.open_table(base).to_arrow().to_pylist()
        assert {row["id"]: row["ts"] for row in ours} == rows
        assert rows.keys() == ids

    land(landing, 1)
    ingest(base, source, key="id", order_by="ts", version=version, type=kind)
    land(landing, 2)
    ingest(base, source)
    check(2, {0, 1, 2})
    # The streamer stores its checkpoint in this way, through the extra metadata of a commit.
    options = {
        "hoodie.table.name": "t",
        "hoodie.write.table.version": str(version),
        "hoodie.write.auto.upgrade": "false",
        "hoodie.datasource.write.commitmeta.key.prefix": name.partition(".")[0],
        name: str(T0 + 4),
    }
    ddl = "id bigint, ts bigint"
    hudi.write(base, rows=[{"id": 4, "ts": 4}], schema=ddl, options=options)
    others = {key: value for key, value in options.items() if key != name}
    hudi.write(base, rows=[{"id": 4, "ts": 5}], schema=ddl, options=others)
    check(4, {0, 1, 2, 4})
    for number in (3, 4, 5):
        land(landing, number)
    assert ingest(base, source).rows == 2
    check(5, {0, 1, 2, 4, 5})
