"""Every way to read, over a table and its twin with ORC base files, whose times none may write."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import HudiTable
from pyhudi.errors import CorruptTable, UnsupportedTableFeature
from tests.helpers.orc_twin import orc_twin
from tests.helpers.table_builder import SMALL, Kind, TableBuilder

PEOPLE = TableBuilder(
    {
        "id": (pa.string(), lambda name: f"k{name:04}"),
        "city": (pa.string(), lambda name: ["oslo", "quito", "lima"][name % 3]),
        "n": (pa.int64(), lambda name: name),
        "tags": (pa.list_(pa.string()), lambda name: ["x"] * (name % 4)),
        "st": (
            pa.struct([("a", pa.int32()), ("at", pa.timestamp("us", "UTC"))]),
            lambda name: {"a": name, "at": name},
        ),
        "ts": (pa.int64(), 1),
    },
    partition_by="city",
    order_by="ts",
    version=6,
    index="simple",
    metadata=False,
    options=SMALL,
)


@pytest.fixture(scope="module", params=["cow", "mor"])
def twins(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Path]:
    kind: Kind = request.param
    base = tmp_path_factory.mktemp(kind) / "parquet"
    table = PEOPLE.make(base, kind=kind, first=range(120))
    table.upsert(PEOPLE.rows(range(100, 130), n=-1, ts=2))
    table.upsert(PEOPLE.rows(range(5), n=-2, ts=3))
    table.delete(where="id IN ('k0007', 'k0008')")
    return base, orc_twin(base, base.parent / "orc")


def opened(base: Path) -> HudiTable:
    # Commits of the twin tell the sizes of Parquet files.
    return pyhudi.open_table(base, options={"pyhudi.read.check.file.sizes": "false"})


def instants(table: HudiTable) -> list[str]:
    return sorted(table.inspect.commits()["requested"].to_pylist())


def diff(table: HudiTable) -> pa.Table:
    first, *_, last = instants(table)
    return table.diff(first, last).to_arrow()


READS: dict[str, Callable[[HudiTable], pa.Table]] = {
    "snapshot": lambda table: table.scan(meta_fields=True).to_arrow(),
    "read_optimized": lambda table: table.scan(read_optimized=True).to_arrow(),
    "projection": lambda table: table.scan(["st", "n"]).to_arrow(),
    "filter": lambda table: table.scan(where="n < 0 AND city = 'oslo'").to_arrow(),
    "filter_not_read": lambda table: table.scan(["id"], where="st.a > 100").to_arrow(),
    "key": lambda table: table.scan(where="id = 'k0042'").to_arrow(),
    "little_memory": lambda table: table.scan(memory_limit=1 << 20).to_arrow(),
    "time_travel": lambda table: table.scan(as_of=instants(table)[1]).to_arrow(),
    "incremental": lambda table: table.incremental(instants(table)[0]).to_arrow(),
    "diff": diff,
}


def rows(found: pa.Table) -> list[dict[str, Any]]:
    return sorted(found.to_pylist(), key=repr)


@pytest.mark.parametrize("read", READS)
def test_orc_table_reads_like_parquet_table(twins: tuple[Path, Path], read: str) -> None:
    parquet, orc = (READS[read](opened(base)) for base in twins)
    assert parquet.num_rows > 0
    assert orc.schema == parquet.schema
    assert rows(orc) == rows(parquet)


def test_counts_files_and_checks(twins: tuple[Path, Path]) -> None:
    parquet, orc = (opened(base) for base in twins)
    assert orc.scan().count() == parquet.scan().count() == 128
    assert orc.scan(where="n < 0").count() == parquet.scan(where="n < 0").count()
    paths = orc.inspect.files()["name"].to_pylist()
    assert any(path.endswith(".orc") for path in paths)
    assert not any(path.endswith(".parquet") for path in paths)
    kinds = {finding.kind for finding in orc.check(deep=True).findings}
    assert kinds <= {"size_differs", "properties_changed"}, kinds


def test_orc_damage_names_file(twins: tuple[Path, Path], tmp_path: Path) -> None:
    base = tmp_path / "damaged"
    shutil.copytree(twins[1], base)
    file = max(base.glob("oslo/*.orc"))
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CorruptTable, match=r"\.orc"):
        pyhudi.open_table(base).scan().to_arrow()
    kinds = {finding.kind for finding in pyhudi.open_table(base).check(deep=True).findings}
    assert "damaged_file" in kinds


REWRITES: dict[str, Callable[[HudiTable], Any]] = {
    "upsert": lambda table: table.upsert(PEOPLE.rows([1])),
    "insert": lambda table: table.insert(PEOPLE.rows([999])),
    "bulk_insert": lambda table: table.bulk_insert(PEOPLE.rows([999])),
    "delete": lambda table: table.delete(where="id = 'k0001'"),
    "update": lambda table: table.update("id = 'k0001'", {"n": 1}),
    "overwrite": lambda table: table.overwrite(PEOPLE.rows([1])),
    "compact": lambda table: table.compact(),
    "cluster": lambda table: table.cluster(),
    "alter": lambda table: table.alter().add_column("new", pa.string()).execute(),
}


@pytest.mark.parametrize("verb", REWRITES)
def test_rows_with_times_are_not_written_anew(twins: tuple[Path, Path], verb: str) -> None:
    before = {path: path.stat().st_size for path in twins[1].rglob("*")}
    said = r"hoodie\.table\.base\.file\.format is ORC: column 'st\.at'"
    with pytest.raises(UnsupportedTableFeature, match=said):
        REWRITES[verb](pyhudi.open_table(twins[1]))
    assert {path: path.stat().st_size for path in twins[1].rglob("*")} == before


def test_mixed_format_table_is_read_only(twins: tuple[Path, Path], tmp_path: Path) -> None:
    base = tmp_path / "both"
    shutil.copytree(twins[1], base)
    with (base / ".hoodie" / "hoodie.properties").open("a", encoding="utf-8") as lines:
        lines.write("hoodie.table.multiple.base.file.formats.enable=true\n")
    table = pyhudi.open_table(base)
    for verb in (table.clean, table.upgrade, lambda: table.upsert(PEOPLE.rows([1]))):
        with pytest.raises(UnsupportedTableFeature, match=r"multiple\.base\.file\.formats"):
            verb()
