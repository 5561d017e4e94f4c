"""Time travel: guards of the timeline, schemas of the time, handles that are for reading."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.clock import format_instant, parse_instant
from pyhudi.config.actions import Instant, State
from pyhudi.config.retention_options import HistoryOptions
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import ConfigError, HistoryUnavailable
from pyhudi.services import clustering, compaction
from pyhudi.timeline import Timeline
from pyhudi.timeline.archiving import archive
from pyhudi.timeline.instant_range import InstantRange
from pyhudi.timeline.time_travel import (
    check_after_first_commit,
    first_incomplete_commit,
    timeline_as_of,
)
from tests.helpers.refused import REFUSED
from tests.helpers.rows import by_id
from tests.helpers.tables import GoldenTables, facts, names, unpack
from tests.unit.memory_storage import MemoryStorage


def t(number: int) -> str:
    """An instant; a greater number is later."""
    return f"20240101000000{number:03d}"


def timeline(*file_names: str, contents: Mapping[str, Any] | None = None) -> Timeline:
    files = {f".hoodie/{name}": b"" for name in file_names}
    files |= {f".hoodie/{n}": json.dumps(v).encode() for n, v in (contents or {}).items()}
    config = TableConfig.parse(b"hoodie.table.name=t\nhoodie.table.version=6\n")
    return Timeline.load(MemoryStorage(files), config)


def clean(number: int, earliest: str | None) -> dict[str, Any]:
    return {f"{t(number)}.clean": {"earliestCommitToRetain": earliest}}


class TestGuards:
    COMMITS = tuple(f"{t(number)}.commit" for number in (1, 2, 3))

    @pytest.mark.parametrize(("asked", "allowed"), [(3, True), (4, False), (9, False)])
    def test_time_travel_refuses_time_pending_write_can_change(
        self, asked: int, allowed: bool
    ) -> None:
        whole = timeline(*self.COMMITS, f"{t(4)}.commit.requested", f"{t(5)}.commit")
        if allowed:
            assert [one.requested for one in timeline_as_of(whole, t(asked)).commits][-1] == t(3)
        else:
            with pytest.raises(HistoryUnavailable, match=t(4)):
                timeline_as_of(whole, t(asked))

    @pytest.mark.parametrize("pending", ["compaction.requested", "clean.inflight"])
    def test_time_travel_ignores_pending_service(self, pending: str) -> None:
        whole = timeline(*self.COMMITS, f"{t(2)}1.{pending}")
        assert first_incomplete_commit(whole) is None
        assert timeline_as_of(whole, t(9)).commits == whole.commits

    def test_pending_clustering_is_told_from_overwrite_by_plan(self) -> None:
        name = f"{t(4)}.replacecommit.requested"
        plan: dict[str, Any] = {name: {"clusteringPlan": {"inputGroups": []}}}
        assert first_incomplete_commit(timeline(*self.COMMITS, contents=plan)) is None
        assert first_incomplete_commit(timeline(*self.COMMITS, name)) is not None

    @pytest.mark.parametrize(("asked", "allowed"), [(1, False), (2, True), (3, True)])
    def test_time_travel_refuses_cleaned_snapshot(self, asked: int, allowed: bool) -> None:
        whole = timeline(*self.COMMITS, contents={**clean(4, t(1)), **clean(5, t(2))})
        if allowed:
            timeline_as_of(whole, t(asked))
        else:
            with pytest.raises(HistoryUnavailable, match=f"before {t(2)}"):
                timeline_as_of(whole, t(asked))

    @pytest.mark.parametrize("earliest", ["", None])
    def test_version_cleaner_retains_active_timeline(self, earliest: str | None) -> None:
        whole = timeline(*self.COMMITS, contents=clean(4, earliest))
        assert timeline_as_of(whole, t(1)).commits == whole.commits[:1]
        with pytest.raises(HistoryUnavailable, match=f"before {t(1)}"):
            timeline_as_of(whole, t(0))

    def test_cut_timeline_stays_cut(self) -> None:
        cut = timeline_as_of(timeline(*self.COMMITS), t(2))
        assert timeline_as_of(cut, t(1)).commits == cut.commits[:1]
        with pytest.raises(ConfigError, match=t(2)):
            timeline_as_of(cut, t(3))


def test_time_travel_counts_archived_clean(tmp_path: Path) -> None:
    base = unpack("v6_cow_archived", tmp_path)
    for path in (base / ".hoodie").glob("*.clean*"):
        path.unlink()
    table = pyhudi.open_table(base)
    first = facts("v6_cow_archived")["archived"][0]["requested"]
    with pytest.raises(HistoryUnavailable, match="cleaned"):
        table.scan(as_of=first)


PENDING = {name for name in names() if name.endswith(("_inflight", "_mor_crash"))} | {
    "v6_cow_int96",
    "v9_cow_null_ordering",
}
"""Tables with an incomplete write."""


@pytest.mark.parametrize("name", [name for name in names() if name not in {*PENDING, *REFUSED}])
def test_time_travel_to_newest_time_is_snapshot(name: str, golden: GoldenTables) -> None:
    table = pyhudi.open_table(golden.unpack(name))
    scan = table.scan(as_of="2099-01-01")
    assert scan.schema == table.scan().schema
    assert scan.plan() == table.scan().plan()


@pytest.mark.parametrize("name", sorted(PENDING))
def test_time_travel_refuses_newest_time_while_write_is_pending(
    name: str, golden: GoldenTables
) -> None:
    table = pyhudi.open_table(golden.unpack(name))
    with pytest.raises(HistoryUnavailable, match="incomplete"):
        table.scan(as_of="2099-01-01")


def test_time_travel_ignores_later_log_blocks(tmp_path: Path) -> None:
    name = "v6_mor_part_avro"
    base, known = unpack(name, tmp_path), facts(name)
    asked = known["expected"]["as_of"][1]
    state = pyhudi.open_table(base).state
    gone = [one for one in state.timeline.filter_completed() if one.requested <= asked["as_of"]]
    archive(state.storage, state.config, state.timeline, gone, HistoryOptions())
    scan = pyhudi.open_table(base).scan(as_of=asked["as_of"], columns=["id", "name", "ts"])
    wanted = [(row["id"], row["name"], row["ts"]) for row in asked["rows"]]
    assert sorted(map(tuple, (row.values() for row in scan.to_arrow().to_pylist()))) == sorted(
        wanted
    )


@pytest.mark.parametrize("name", ["v6_cow_simple", "v8_mor_event_time", "v9_mor_part_avro"])
def test_time_travel_before_first_commit_raises(name: str, golden: GoldenTables) -> None:
    table = pyhudi.open_table(golden.unpack(name))
    first = table.inspect.commits()["requested"][0].as_py()
    for asked in ("2000-01-01", before(first)):
        with pytest.raises(HistoryUnavailable, match=f"before the first commit, {first}"):
            table.scan(as_of=asked)
        with pytest.raises(HistoryUnavailable, match="before the first commit"):
            pyhudi.open_table(table.uri, as_of=asked)
        for moments in ((asked, "2099-01-01"), ("2099-01-01", asked)):
            with pytest.raises(HistoryUnavailable, match="before the first commit"):
                table.diff(*moments)
    assert table.scan(as_of=first).count() > 0


def before(instant: str) -> str:
    """One millisecond earlier."""
    return format_instant(parse_instant(instant, "UTC") - 1, "UTC")


@pytest.mark.parametrize("name", ["v6_cow_archived", "v9_cow_archived"])
def test_time_travel_finds_archived_first_commit(name: str, tmp_path: Path) -> None:
    base = unpack(name, tmp_path)
    first = facts(name)["archived"][0]["requested"]
    # Without its cleans nothing else refuses the time.
    for path in base.joinpath(".hoodie").rglob("*.clean*"):
        path.unlink()
    timeline = pyhudi.open_table(base).state.timeline
    check_after_first_commit(timeline, InstantRange(until=first), "it")
    with pytest.raises(HistoryUnavailable, match=f"before the first commit, {first}"):
        check_after_first_commit(timeline, InstantRange(until=before(first)), "it")


@pytest.mark.parametrize(
    ("first", "before"),
    [(t(1), t(0)), ("00000000000002", "00000000000001"), ("20240101000000", "20231231235959")],
)
def test_closed_range_includes_both_ends(first: str, before: str) -> None:
    incremental_range = InstantRange.between(first, first)
    of = {
        text: Instant(text, "commit", State.REQUESTED, None, text)
        for text in (before, first, f"{first}1")
    }
    assert [text for text, instant in of.items() if incremental_range.contains(instant)] == [first]


@pytest.mark.parametrize("name", [name for name in names() if name.endswith("cow_empty")])
def test_time_travel_of_empty_table_is_empty(name: str, golden: GoldenTables) -> None:
    table = pyhudi.open_table(golden.unpack(name))
    assert not table.state.timeline.commits
    assert table.scan(as_of="2000-01-01").count() == 0
    assert table.incremental(end="2000-01-01").count() == 0


def test_time_travel_uses_schema_of_its_time(golden: GoldenTables) -> None:
    name = "v9_cow_evolution"
    first = facts(name)["expected"]["as_of"][0]
    table = pyhudi.open_table(golden.unpack(name))
    past = pyhudi.open_table(golden.unpack(name), as_of=first["as_of"])
    assert past.schema != table.schema
    assert past.schema.names == [c for c in first["columns"] if not c.startswith("_hoodie_")]
    assert table.scan(as_of=first["as_of"]).schema == past.schema


@pytest.mark.parametrize("version", [6, 9])
def test_time_travel_finds_archived_schema_before_service(tmp_path: Path, version: int) -> None:
    rows = pa.table({"id": ["a"], "v": [1]})
    options = {
        "hoodie.archive.automatic": "false",
        "hoodie.clean.automatic": "false",
        "hoodie.metadata.enable": "false",
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
    }
    table = pyhudi.create_table(
        tmp_path / "t", rows, key="id", type="mor", version=version, options=options
    )
    table.upsert(rows.append_column("n", pa.array([1])), schema_mode="merge")
    table.compact()
    service = table.refresh().state.timeline.commits[-1]
    table.alter().add_column("later", pa.string()).execute()
    table.archive()
    active = table.refresh().state.timeline.commits
    assert active[0] == service
    assert table.schema.names == ["id", "v", "n", "later"]
    past = pyhudi.open_table(tmp_path / "t", as_of=service.requested)
    assert past.schema.names == ["id", "v", "n"]


class TestHandles:
    ROWS = pa.table({"id": ["a"], "v": [1]})

    @pytest.fixture
    def written(self, tmp_path: Path) -> pyhudi.HudiTable:
        return pyhudi.create_table(tmp_path / "t", self.ROWS, key="id", order_by="v")

    def test_stay_at_their_time(self, written: pyhudi.HudiTable) -> None:
        first = written.inspect.commits()["requested"][0].as_py()
        written.upsert(pa.table({"id": ["b"], "v": [2]}))
        past = pyhudi.open_table(written.uri, as_of=first)
        assert past.refresh().scan().count() == 1
        assert past.incremental().count() == 1
        assert past.inspect.commits().num_rows == 1
        assert written.scan().count() == 2

    def test_refuse_writes(self, written: pyhudi.HudiTable) -> None:
        past = pyhudi.open_table(written.uri, as_of="2099-01-01")
        for write in (past.upsert, past.insert):
            with pytest.raises(ConfigError, match="as of 2099-01-01"):
                write(self.ROWS)
        with pytest.raises(ConfigError, match="as of 2099-01-01"):
            past.delete_keys(self.ROWS.select(["id"]))
        assert written.refresh().inspect.commits().num_rows == 1

    def test_refuse_what_is_no_time(self, written: pyhudi.HudiTable) -> None:
        with pytest.raises(ConfigError, match="is not a time"):
            pyhudi.open_table(written.uri, as_of="soon")
        with pytest.raises(ConfigError, match="is not a time"):
            written.scan(as_of="soon")


class TestCleanerOfFileVersions:
    """Each clean names the files that it removed; which were current is seen by the others."""

    def table(self, base: Path) -> tuple[pyhudi.HudiTable, list[str]]:
        """A table of one file group, which the last write replaces, and the times of its writes."""
        rows = pa.table({"id": ["a"], "v": [1]})
        table = pyhudi.create_table(
            base, rows, key="id", version=6, options={"hoodie.metadata.enable": "false"}
        )
        times = [table.upsert(rows).instant for _ in range(2)]
        times.append(table.overwrite(rows).instant)
        commits = [one.requested for one in table.state.timeline.commits]
        assert commits[1:] == times
        return table, commits

    def clean(self, base: Path, after: str, *instants: str) -> None:
        """Removes the base files of some instants, as a clean does that is later than all."""
        gone = [path for path in base.glob("*.parquet") if path.stem.rsplit("_", 1)[1] in instants]
        assert len(gone) == len(instants)
        for path in gone:
            path.unlink()
        names = {"successDeleteFiles": [path.name for path in gone]}
        content = {"earliestCommitToRetain": "", "partitionMetadata": {"": names}}
        (base / ".hoodie" / f"{int(after) + 1}.clean").write_text(json.dumps(content))

    def readable(self, base: Path, times: list[str]) -> list[bool]:
        def is_readable(time: str) -> bool:
            try:
                return pyhudi.open_table(base, as_of=time).scan().count() == 1
            except HistoryUnavailable:
                return False

        return [is_readable(time) for time in times]

    def test_superseded_file_is_not_missed(self, tmp_path: Path) -> None:
        _, times = self.table(tmp_path)
        assert self.readable(tmp_path, times) == [True] * 4
        self.clean(tmp_path, times[-1], times[0])
        assert self.readable(tmp_path, times) == [False, True, True, True]

    def test_file_of_replaced_group_is_missed_before_replacement(self, tmp_path: Path) -> None:
        _, times = self.table(tmp_path)
        self.clean(tmp_path, times[-1], times[1], times[2])
        assert self.readable(tmp_path, times) == [True, False, False, True]


@pytest.mark.parametrize("service", ["compact", "cluster"])
def test_time_travel_reads_service_that_ran_after_column_was_widened(
    service: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Apache Hudi executes a plan with the schema of the table by then; its files are of before."""

    def rows(keys: list[str], value: int, kind: pa.DataType) -> pa.Table:
        values = pa.array([value] * len(keys), kind)
        return pa.table({"id": keys, "ts": [value] * len(keys), "v": values})

    for module in (compaction, clustering):
        monkeypatch.setattr(module, "as_planned", lambda table, *_: table)
    table = pyhudi.create_table(
        tmp_path / "t",
        rows(["1", "2"], 1, pa.int32()),
        key="id",
        order_by="ts",
        type="mor",
        index="simple",
    )
    table.upsert(rows(["1"], 2, pa.int32()))
    getattr(table, service)(execute=False)
    before = table.insert(rows(["3"], 3, pa.int32()))
    wanted = by_id(table.scan())
    table.insert(rows(["4"], 1 << 40, pa.int64()), schema_mode="merge")
    assert getattr(table, service)(schedule=False).instants
    found = table.scan(as_of=before.instant)
    assert by_id(found) == wanted
    assert found.schema.field("v").type == pa.int32()
    assert by_id(table.scan(as_of=before.instant, where="v > 1")) == [wanted[0], wanted[2]]
