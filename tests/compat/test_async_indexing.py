"""pyhudi builds indexes while Apache Hudi writes; then both write with them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

import pyhudi
from pyhudi.config.actions import INDEXING
from pyhudi.metadata.initialize import PartitionBuild
from tests.compat.test_alternating_writers import Model
from tests.compat.test_metadata_initialize import (
    LOCATIONS,
    OF_PARTITIONS,
    Kind,
    Layout,
    make,
    partitions,
)
from tests.compat.test_metadata_writes import (
    METADATA,
    STATISTICS,
    check,
    read_by_pyhudi,
    write_with_hudi,
    write_with_pyhudi,
)
from tests.compat.test_record_index import INDEXES
from tests.helpers.oracle.client import HudiOracle


@pytest.mark.parametrize(
    ("version", "kind", "index", "hudi"),
    [
        (9, "mor", "whole", "1.2.0"),
        (9, "cow", "whole", "1.2.0"),
        (9, "mor", "by partition", "1.2.0"),
        (9, "cow", "by partition", "1.2.0"),
        (8, "mor", "whole", "1.0.2"),
        (6, "mor", "whole", "0.15.0"),
        (6, "cow", "whole", "0.15.0"),
    ],
    indirect=["hudi"],
)
@pytest.mark.timeout(600)
def test_hudi_writes_meanwhile(
    tmp_path: Path,
    hudi: HudiOracle,
    version: int,
    kind: Kind,
    index: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    base = tmp_path / "trips"
    model = Model(random.Random(f"beside-{version}-{kind}-{index}"))
    layout, by_partition = Layout(version, kind), index == "by partition"
    # Beside an index by data partition Hudi fails over statistics of partitions, its own too.
    chosen = {**METADATA, **({} if by_partition else STATISTICS)}
    before = {**chosen, "hoodie.metadata.record.index.enable": "false"}
    make(base, model, layout, {k: v for k, v in before.items() if k != OF_PARTITIONS})
    write_with_pyhudi(base, model)
    write_files = PartitionBuild.write_files

    def slowly(self: PartitionBuild) -> object:
        stats = write_files(self)
        # Hudi leaves the indexing alone, and the files, and compacts its metadata table.
        for _ in range(3):
            write_with_hudi(hudi, base, model, layout.for_hudi(before))
            write_with_pyhudi(base, model)
        return stats

    with monkeypatch.context() as patch:
        patch.setattr(PartitionBuild, "write_files", slowly)
        pyhudi.open_table(str(base)).create_index(
            "record_index", partitioned=by_partition, concurrently=True
        )
    table = pyhudi.open_table(str(base))
    assert "record_index" in partitions(base)
    assert len(table.state.timeline.filter_completed(INDEXING)) == 1
    assert table.check(deep=True).ok
    check(hudi, base, model)
    located = INDEXES["by_partition"] if by_partition else LOCATIONS
    options = layout.for_hudi({**chosen, **located})
    for _ in range(2):
        write_with_hudi(hudi, base, model, options)
        write_with_pyhudi(base, model)
    check(hudi, base, model)
    assert pyhudi.open_table(str(base)).check(deep=True).ok
    assert "record_index" in partitions(base)


OTHERS: dict[str, tuple[str, dict[str, Any], dict[str, str]]] = {
    "statistics": ("column_stats", {}, STATISTICS),
    "filters": ("bloom_filters", {}, {"hoodie.metadata.index.bloom.filter.enable": "true"}),
    "values": (
        "secondary_index",
        {"columns": ["note"], "name": "idx_note"},
        {**LOCATIONS, "hoodie.metadata.index.secondary.enable": "true"},
    ),
}
"""What is asked for, and what Hudi's writers are told from then on."""


@pytest.mark.parametrize(
    ("version", "kind", "index", "hudi"),
    [
        (9, "mor", "statistics", "1.2.0"),
        (9, "cow", "values", "1.2.0"),
        (9, "cow", "filters", "1.2.0"),
        (8, "cow", "statistics", "1.0.2"),
        (8, "mor", "values", "1.0.2"),
        (6, "cow", "statistics", "0.15.0"),
        (6, "mor", "filters", "0.15.0"),
        (6, "mor", "statistics", "0.15.0"),
    ],
    indirect=["hudi"],
)
@pytest.mark.timeout(600)
def test_hudi_writes_while_another_index_is_made(
    tmp_path: Path,
    hudi: HudiOracle,
    version: int,
    kind: Kind,
    index: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    base = tmp_path / "trips"
    model = Model(random.Random(f"beside-{version}-{kind}-{index}"))
    layout, (name, more, told) = Layout(version, kind), OTHERS[index]
    before = {**METADATA, **(LOCATIONS if index == "values" else {})}
    own = {key: text for key, text in before.items() if key != OF_PARTITIONS or version > 6}
    make(base, model, layout, own)
    write_with_pyhudi(base, model)
    write_files = PartitionBuild.write_files

    def slowly(self: PartitionBuild) -> object:
        stats = write_files(self)
        if self.partition.name != "partition_stats":
            for _ in range(2):
                write_with_hudi(hudi, base, model, layout.for_hudi(before))
                write_with_pyhudi(base, model)
        return stats

    with monkeypatch.context() as patch:
        patch.setattr(PartitionBuild, "write_files", slowly)
        made = pyhudi.open_table(str(base)).create_index(name, concurrently=True, **more)
    found = {part for part in made if part.startswith(name)}
    assert found
    assert len(pyhudi.open_table(str(base)).state.timeline.filter_completed(INDEXING)) == 1
    _check(hudi, base, model)
    options = layout.for_hudi({**METADATA, **told})
    for _ in range(2):
        write_with_hudi(hudi, base, model, options)
        write_with_pyhudi(base, model)
        assert found <= partitions(base)
    _check(hudi, base, model)


def _check(hudi: HudiOracle, base: Path, model: Model) -> None:
    """Both find all rows by every index, and what those say holds."""
    check(hudi, base, model)
    table, rows = pyhudi.open_table(str(base)), model.sorted()
    if "secondary_index_idx_note" in table.config.metadata_partitions:
        for value in ("", "plain", "ünï\u4e16"):
            wanted = [row for row in rows if row["note"] == value]
            assert read_by_pyhudi(base, pc.field("note") == value) == wanted
            read = hudi.read(base, metadata=True, data_skipping=True, filter=f"note = '{value}'")
            assert sorted(read["rows"], key=lambda row: str(row["id"])) == wanted, value
    # Up to version 6 log files that were there first have no statistics, and are read.
    found = table.check(deep=True).findings
    assert not [one for one in found if table.version > 6 or ".log." not in one.item], found
