"""Hudi's streaming sink and a sink over pyhudi pass over the batches that the other one wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import pyhudi
from tests.compat.test_alternating_writers import hudi_options
from tests.helpers.oracle.client import HudiOracle

KEY = "_hudi_streaming_sink_checkpoint"
SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int32())])
VERSIONS = [pytest.param("0.15.0", 6, id="v6"), pytest.param("1.2.0", 9, id="v9")]


@pytest.mark.parametrize(("hudi", "version"), VERSIONS, indirect=["hudi"])
def test_batches_are_counted_together(hudi: HudiOracle, version: int, tmp_path: Path) -> None:
    base, files = tmp_path / "trips", tmp_path / "files"
    files.mkdir()
    off = {"hoodie.metadata.enable": "false"}
    pyhudi.create_table(base, SCHEMA, key="id", order_by="ts", version=version, options=off)

    def arrive(number: int, key: str) -> None:
        """One more file, which is Hudi's next batch."""
        (files / f"{number}.json").write_text(json.dumps({"id": key, "ts": number}))
        hudi.command(
            "stream",
            base=str(base),
            folder=str(files),
            schema="id string, ts int",
            checkpoint=str(tmp_path / "checkpoint"),
            options=hudi_options("cow", partitioned=False),
        )

    def told() -> list[str | None]:
        timeline = pyhudi.open_table(base).state.timeline
        return [timeline.commit_metadata(one).extra_metadata.get(KEY) for one in timeline.commits]

    def write(batch: int, key: str) -> None:
        options = {**off, KEY: json.dumps({"default_single_writer": str(batch)})}
        pyhudi.open_table(base, options=options).upsert(
            pa.table({"id": [key], "ts": [batch]}, SCHEMA)
        )

    arrive(0, "a")
    assert [json.loads(one or "") for one in told()] == [{"default_single_writer": "0"}]
    write(1, "b")
    arrive(1, "passed over")
    arrive(2, "c")
    found = pyhudi.open_table(base).scan(["id", "ts"]).to_arrow().to_pylist()
    assert {row["id"]: row["ts"] for row in found} == {"a": 0, "b": 1, "c": 2}
    assert [json.loads(one or "")["default_single_writer"] for one in told()] == ["0", "1", "2"]
