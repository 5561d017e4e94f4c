"""Every verb on a table that Apache Hudi reads after each step, and goes on writing to."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.timeline import Timeline
from tests.compat.test_alternating_writers import hudi_options, read_by_hudi, read_by_pyhudi
from tests.helpers.oracle.client import HudiOracle

SCHEMA = pa.schema(
    [("id", pa.string()), ("ts", pa.int32()), ("city", pa.string()), ("fare", pa.float64())]
)
DDL = "id string, ts int, city string, fare double"
REPLACING = ("INSERT_OVERWRITE", "INSERT_OVERWRITE_TABLE", "DELETE_PARTITION")


def trips(ids: str, city: str, ts: int = 10, fare: float = 1.0) -> pa.Table:
    rows = [{"id": one, "ts": ts, "city": city, "fare": fare} for one in ids]
    return pa.Table.from_pylist(rows, SCHEMA)


class Steps:
    """Carries out verbs, and compares what both read after each with the keys and fares given."""

    def __init__(self, hudi: HudiOracle, base: Path) -> None:
        self.hudi, self.base = hudi, base

    def expect(self, fares: dict[str, float]) -> None:
        ours, theirs = read_by_pyhudi(self.base), read_by_hudi(self.hudi, self.base)
        assert {row["id"]: row["fare"] for row in ours} == fares
        assert len(ours) == len(fares)
        assert theirs == ours

    def action(self, instant: str) -> tuple[str, str | None, Any]:
        """The action, operation and replaced file groups of a commit."""
        table = pyhudi.open_table(str(self.base))
        timeline = Timeline.load(table.storage, table.config)
        (found,) = (one for one in timeline.commits if one.requested == instant)
        metadata = timeline.commit_metadata(found)
        return found.action, metadata.operation_type, metadata.partition_to_replace_file_ids


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize(
    ("version", "hudi"), [(6, "0.15.0"), (8, "1.0.2"), (9, "1.2.0")], indirect=["hudi"]
)
@pytest.mark.timeout(600)
def test_hudi_reads_every_verb_and_goes_on(  # noqa: PLR0915 - one long story
    tmp_path: Path, hudi: HudiOracle, version: int, kind: Literal["cow", "mor"]
) -> None:
    base = tmp_path / "trips"
    steps = Steps(hudi, base)
    first = pa.concat_tables([trips("ab", "oslo"), trips("cd", "lima")])
    table = pyhudi.create_table(
        str(base), first, key="id", partition_by="city", order_by="ts", type=kind, version=version,
        options={"hoodie.table.name": "trips", "hoodie.index.bloom.num_entries": 64},
    )  # fmt: skip
    table.bulk_insert(pa.concat_tables([trips("fe", "lima"), trips("g", "rome")]), sort="global")
    table.upsert(trips("f", "lima", 11, 2.0))
    expected = dict.fromkeys("abcdefg", 1.0) | {"f": 2.0}
    steps.expect(expected)

    table.update("city = 'lima' AND fare < 2", {"fare": "fare * 10", "ts": 12})
    table.delete("id IN ('a', 'g')")
    expected = {"b": 1.0, "c": 10.0, "d": 10.0, "e": 10.0, "f": 2.0}
    steps.expect(expected)

    source = pa.table(
        {"id": list("bcx"), "city": ["oslo", "lima", "lima"], "more": [5.0, 6.0, 7.0]}
    )
    merge = table.merge(source).when_matched_delete(where="source.more > 5")
    merge = merge.when_matched_update({"fare": "target.fare + source.more"})
    values = {"id": "id", "city": "city", "fare": "more", "ts": 20}
    result = merge.when_not_matched_insert(values).execute()
    assert (result.rows_inserted, result.rows_updated, result.rows_deleted) == (1, 1, 1)
    expected = {"b": 6.0, "d": 10.0, "e": 10.0, "f": 2.0, "x": 7.0}
    steps.expect(expected)

    result = table.overwrite_partitions(trips("hi", "lima", 1, 3.0))
    action, operation, replaced = steps.action(result.instant)
    assert (action, operation) == ("replacecommit", "INSERT_OVERWRITE")
    assert list(replaced) == ["lima"]
    expected = {"b": 6.0, "h": 3.0, "i": 3.0}
    steps.expect(expected)

    hudi.write(
        base, rows=trips("ij", "lima", 30, 4.0).to_pylist(), schema=DDL, operation="upsert",
        options=hudi_options(kind, partitioned=True),
    )  # fmt: skip
    expected |= {"i": 4.0, "j": 4.0}
    steps.expect(expected)

    table.refresh()
    table.upsert(trips("jk", "lima", 31, 5.0))
    result = table.delete_partitions(["oslo", "nowhere"])
    action, operation, replaced = steps.action(result.instant)
    assert (action, operation) == ("replacecommit", "DELETE_PARTITION")
    named = {"oslo": 1, "nowhere": 0} if version == 6 else {"oslo": 1}
    assert {partition: len(ids) for partition, ids in replaced.items()} == named
    expected = {"h": 3.0, "i": 4.0, "j": 5.0, "k": 5.0}
    steps.expect(expected)

    result = table.overwrite(trips("hz", "rome", 1, 6.0))
    action, operation, replaced = steps.action(result.instant)
    assert (action, operation) == ("replacecommit", "INSERT_OVERWRITE_TABLE")
    assert {"lima", "oslo", "rome"} <= set(replaced)
    steps.expect({"h": 6.0, "z": 6.0})

    hudi.write(
        base,
        rows=trips("h", "rome", 40, 7.0).to_pylist(),
        schema=DDL,
        operation="insert_overwrite",
        options=hudi_options(kind, partitioned=True),
    )  # fmt: skip
    steps.expect({"h": 7.0})
    table.refresh()
    table.upsert(trips("h", "rome", 41, 8.0))
    table.overwrite(trips("", "rome"))
    steps.expect({})
    hudi.write(
        base, rows=trips("n", "oslo").to_pylist(), schema=DDL, operation="bulk_insert",
        options=hudi_options(kind, partitioned=True),
    )  # fmt: skip
    steps.expect({"n": 1.0})
    answer = hudi.validate(base)
    assert answer["ok"], answer["problems"]
