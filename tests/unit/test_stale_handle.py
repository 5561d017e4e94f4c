"""A handle that others have written after: it shows the rows of its own moment, or says why not."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.api.scan import Scan
from pyhudi.api.table import HudiTable
from pyhudi.config.actions import COMMIT
from pyhudi.errors import HistoryUnavailable
from pyhudi.metadata.consistency import is_initial_time
from pyhudi.metadata.initialize import PartitionBuild
from pyhudi.metadata.reader import MetadataTable
from pyhudi.query.file_pruning import select_file_slices
from pyhudi.storage.storage import Storage
from pyhudi.timeline import instant_files
from pyhudi.timeline.staleness import check_snapshot_readable, newer_timeline
from pyhudi.timeline.time_travel import timeline_as_of
from pyhudi.txn.pending_instant import PendingInstant
from tests.helpers.metadata_table import metadata_table
from tests.helpers.pairwise import pairwise
from tests.helpers.table_builder import TableBuilder, numbered
from tests.unit.test_time_travel import clean, t, timeline

COUNT = 80
NO_METADATA = {"hoodie.metadata.enable": "false"}
INDEXES: dict[str, dict[str, Any]] = {
    "simple": {"index": "simple"},
    "bloom": {"index": "bloom"},
    "record": {"index": "record_index"},
    "bucket": {"index": "bucket", "options": {"hoodie.bucket.index.num.buckets": "2"}},
}
CASES = pairwise([*INDEXES], (6, 8, 9), ("cow", "mor"))


TABLE = TableBuilder(
    {
        "id": (pa.string(), numbered(3)),
        "part": (pa.string(), lambda number: f"p{number % 2}"),
        "s": (pa.string(), "s1"),
        "v": (pa.int64(), 1),
    },
    partition_by="part",
)


def rows(v: int, first: int = 0, **values: Any) -> pa.Table:
    return TABLE.rows(range(first, first + COUNT), s=f"s{v}", v=v, **values)


def make(base: Path, index: str, version: int, kind: Any, *, named: bool = True) -> HudiTable:
    """A table with every index that the version has, over rows with v = 1.

    named: those that have names too; with them file groups are not replaced.
    """
    table = TABLE.make(base, version=version, kind=kind, **INDEXES[index])
    table.upsert(rows(1))
    for name in ("column_stats", "bloom_filters", "record_index"):
        if name not in table.config.metadata_partitions:
            table.create_index(name)
    if named and version > 6:
        table.create_index("secondary_index", ["s"], name="by_s")
        table.create_index("column_stats", ["s"], name="upper_s", function="upper")
    return table


WHERES = (
    "v = 1",
    "v < 2",
    "s = 's1'",
    "s IN ('s1') AND v = 1",
    "id = 'k007'",
    "part = 'p0' AND v = 1",
)


def opened(base: Path, index: str) -> HudiTable:
    return pyhudi.open_table(base, options=INDEXES[index].get("options", {}))


def answers(scan: Callable[[str], Scan]) -> dict[str, int]:
    return {where: scan(where).count() for where in WHERES}


EXPECTED = dict(zip(WHERES, (80, 80, 80, 80, 1, 40), strict=True))


@pytest.mark.parametrize(("index", "version", "kind"), CASES)
@pytest.mark.slow
def test_stale_handle_finds_rows_of_its_snapshot(
    tmp_path: Path, index: str, version: int, kind: Any
) -> None:
    make(tmp_path, index, version, kind)
    stale = opened(tmp_path, index)
    begun = {where: stale.scan(where=where) for where in WHERES}
    since = stale.inspect.commits()["requested"][0].as_py()
    opened(tmp_path, index).upsert(rows(2))
    now = stale.inspect.commits()["requested"][-1].as_py()
    assert answers(lambda where: stale.scan(where=where)) == EXPECTED
    assert answers(begun.__getitem__) == EXPECTED
    assert answers(lambda where: stale.scan(where=where, as_of=now)) == EXPECTED
    assert answers(lambda where: stale.incremental(where=where)) == EXPECTED
    assert stale.diff(since, now).to_arrow().num_rows == (0 if since == now else 80)
    fresh = pyhudi.open_table(tmp_path)
    assert fresh.scan(where="v = 2").count() == COUNT
    assert fresh.scan(where="v = 1").count() == 0
    assert answers(lambda where: fresh.scan(where=where, as_of=now)) == EXPECTED
    assert answers(lambda where: stale.refresh().scan(where=where))["v = 1"] == 0


CHANGES: dict[str, Callable[[HudiTable], object]] = {
    "delete": lambda table: table.delete_keys(rows(1).select(["id", "part"])),
    "overwrite": lambda table: table.overwrite(rows(2, first=200)),
    "overwrite_partitions": lambda table: table.overwrite_partitions(rows(2, part="p0")),
    "delete_partitions": lambda table: table.delete_partitions(["p0", "p1"]),
    "update": lambda table: table.update("true", {"v": 2, "s": "'s2'"}),
    "rebuild": lambda table: (table.upsert(rows(2)), table.rebuild_metadata()),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(("version", "kind"), [(6, "cow"), (9, "mor")])
def test_whatever_was_done_since(tmp_path: Path, version: int, kind: Any, change: str) -> None:
    make(tmp_path, "record", version, kind, named=False)
    stale = pyhudi.open_table(tmp_path)
    CHANGES[change](pyhudi.open_table(tmp_path))
    assert answers(lambda where: stale.scan(where=where)) == EXPECTED
    assert stale.scan().count() == COUNT


@pytest.mark.parametrize(("version", "kind"), [(6, "mor"), (9, "cow")])
def test_compactions_of_the_metadata_table_bring_no_later_rows(
    tmp_path: Path, version: int, kind: Any
) -> None:
    make(tmp_path, "record", version, kind)
    stale = pyhudi.open_table(tmp_path)
    writer = pyhudi.open_table(tmp_path, options={"hoodie.metadata.compact.max.delta.commits": "2"})
    for v in range(2, 8):
        writer.upsert(rows(v))
    assert metadata_table(Storage(str(tmp_path))).timeline.filter_completed(COMMIT)
    assert answers(lambda where: stale.scan(where=where)) == EXPECTED


@pytest.mark.parametrize(("version", "kind"), [(6, "mor"), (8, "cow"), (9, "mor")])
def test_current_handle_uses_every_index(
    tmp_path: Path, version: int, kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path, "record", version, kind).upsert(rows(2))
    table = pyhudi.open_table(tmp_path)
    listed: list[str] = []
    list_dir = Storage.list_dir

    def counted(self: Storage, path: str) -> Any:
        listed.append(f"{self.uri}/{path}")
        return list_dir(self, path)

    monkeypatch.setattr(Storage, "list_dir", counted)
    steps = {
        step.index
        for where in ("v = 2", "id = 'k007'", "s = 's2'")
        for step in select_file_slices(
            table.state, table.scan(where=where).request
        ).explanation.steps
    }
    assert "record_index" in steps
    assert version == 6 or {"partition_stats(v)", "secondary_index_by_s"} <= steps
    folder = f"{table.uri}/{table.config.layout.folder}"
    assert folder not in [one.rstrip("/") for one in listed]


class TestFilesThatWent:
    """Files of the handle's moment that a clean has removed are missed, and never passed over."""

    @pytest.mark.parametrize("options", [{}, NO_METADATA])
    @pytest.mark.parametrize("version", [6, 9])
    def test_stale_handle_reports_clean(
        self, tmp_path: Path, version: int, options: dict[str, str]
    ) -> None:
        first = make(tmp_path, "simple", version, "cow")
        stale = pyhudi.open_table(tmp_path, options=options)
        files = stale.inspect.files().to_pylist()
        paths = [tmp_path / file["partition"] / file["name"] for file in files]
        second = pyhudi.open_table(tmp_path).upsert(rows(2))
        self._clean(first, second.instant, paths)
        with pytest.raises(HistoryUnavailable, match="removed files") as raised:
            stale.scan().to_arrow()
        assert "refresh" in raised.value.hint
        assert stale.refresh().scan(where="v = 2").count() == COUNT

    @pytest.mark.parametrize("policy", ["KEEP_LATEST_COMMITS", "KEEP_LATEST_FILE_VERSIONS"])
    @pytest.mark.parametrize("version", [6, 8, 9])
    def test_stale_handle_reports_running_clean(
        self, tmp_path: Path, version: int, policy: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        table = TABLE.make(tmp_path, version=version, options=NO_METADATA)
        table.upsert(rows(1))
        stale = pyhudi.open_table(tmp_path, options=NO_METADATA)
        table.upsert(rows(2))
        table.upsert(rows(3))
        before = pyhudi.open_table(tmp_path, options=NO_METADATA)

        def dies(*_: Any) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(PendingInstant, "complete", dies)
            with pytest.raises(KeyboardInterrupt):
                table.clean(policy=policy, retain=1)
        with pytest.raises(HistoryUnavailable, match="removed files"):
            stale.scan().to_arrow()
        if policy == "KEEP_LATEST_COMMITS":
            assert before.scan(where="v = 3").count() == COUNT
        assert pyhudi.open_table(tmp_path, options=NO_METADATA).scan().count() == COUNT

    def _clean(self, table: HudiTable, earliest_retained: str, paths: list[Path]) -> None:
        """As a cleaner leaves storage, without its record in the metadata table."""
        for path in paths:
            path.unlink()
        layout, time = table.config.layout, f"{int(earliest_retained) + 1}"
        instant_files.request(layout, table.storage, time, "clean")
        instant_files.start(layout, table.storage, time, "clean")
        data = json.dumps(
            {"earliestCommitToRetain": earliest_retained, "totalFilesDeleted": 2}
        ).encode()
        instant_files.publish(
            layout, table.storage, time, "clean", f"{int(earliest_retained) + 2}", data
        )

    @pytest.mark.parametrize(
        ("earliest_retained", "gone"), [(t(2), False), (t(3), False), (t(4), True), (None, True)]
    )
    def test_clean_outdates_handle_by_its_earliest_commit_to_retain(
        self, earliest_retained: str | None, gone: bool
    ) -> None:
        commits = [f"{t(number)}.commit" for number in (1, 2, 3)]
        then = timeline(*commits)
        now = timeline(*commits, f"{t(4)}.commit", contents=clean(5, earliest_retained))
        if gone:
            with pytest.raises(HistoryUnavailable, match=t(5)):
                check_snapshot_readable(then, now)
        else:
            check_snapshot_readable(then, now)

    @pytest.mark.parametrize(
        ("pending", "done"),
        [("commit.requested", "commit"), ("compaction.requested", "commit")],
    )
    @pytest.mark.parametrize(
        ("earliest_retained", "gone"), [(t(2), False), (t(3), True), (t(4), True), (t(5), True)]
    )
    def test_pending_replacement_is_checked(
        self, pending: str, done: str, earliest_retained: str, gone: bool
    ) -> None:
        then = timeline(*(f"{t(number)}.commit" for number in (1, 3, 4)), f"{t(2)}.{pending}")
        commits = [f"{t(number)}.commit" for number in (1, 3, 4, 5)]
        cleaned = clean(6, earliest_retained)
        now = timeline(*commits, f"{t(2)}.{pending}", f"{t(2)}.{done}", contents=cleaned)
        if gone:
            with pytest.raises(HistoryUnavailable, match=f"clean {t(6)}.*of {t(4)}"):
                check_snapshot_readable(then, now)
        else:
            check_snapshot_readable(then, now)
        still = timeline(*commits, f"{t(2)}.{pending}", contents=cleaned)
        taken_back = timeline(*commits, f"{t(7)}.rollback", contents=cleaned)
        for nothing_new in (still, taken_back) if earliest_retained != t(5) else ():
            check_snapshot_readable(then, nothing_new)

    @pytest.mark.parametrize(
        ("earliest_retained", "gone"), [(t(2), False), (t(3), True), (None, True)]
    )
    @pytest.mark.parametrize("planned", [True, False])
    def test_earlier_snapshot_needs_more_files(
        self, earliest_retained: str | None, gone: bool, planned: bool
    ) -> None:
        commits = [f"{t(number)}.commit" for number in (1, 2, 3, 4)]
        then = timeline(*commits, *([f"{t(5)}.clean.requested"] if planned else []))
        now = timeline(*commits, contents=clean(5, earliest_retained))
        cut = timeline_as_of(then, t(2))
        if gone:
            with pytest.raises(HistoryUnavailable, match=f"clean {t(5)}.*of {t(2)}"):
                check_snapshot_readable(cut, now)
        else:
            check_snapshot_readable(cut, now)
        if earliest_retained is not None:
            check_snapshot_readable(then, now)

    def test_earlier_clean_is_not_counted(self) -> None:
        commits = [f"{t(number)}.commit" for number in (1, 2, 3, 4)]
        whole = timeline(*commits, contents=clean(5, t(2)))
        check_snapshot_readable(timeline_as_of(whole, t(2)), whole)

    @pytest.mark.parametrize("service", ["compact", "cluster"])
    @pytest.mark.parametrize(("version", "options"), [(6, NO_METADATA), (8, {}), (9, NO_METADATA)])
    def test_pending_service_is_checked(
        self, tmp_path: Path, version: int, options: dict[str, str], service: str
    ) -> None:
        kind: Any = "mor" if service == "compact" else "cow"
        plan: dict[str, Any] = {} if service == "compact" else {"sort_by": ["v"]}
        table = TABLE.make(tmp_path, version=version, kind=kind, options=options)
        table.upsert(rows(1, part="p0"))
        table.upsert(rows(2, part="p0"))
        assert getattr(table, service)(execute=False, **plan).scheduled
        since = table.upsert(rows(3, first=200, part="p1")).instant
        stale = pyhudi.open_table(tmp_path, options=options)
        now = pyhudi.open_table(tmp_path)
        getattr(now, service)(schedule=False)
        now.upsert(rows(4, first=200, part="p1"))
        asks: list[dict[str, Any]] = [{}, {"where": "v = 2"}, {"as_of": since}]
        assert [stale.scan(**ask).count() for ask in asks] == [2 * COUNT, COUNT, 2 * COUNT]
        assert now.clean(retain=2).files_removed
        for ask in asks:
            with pytest.raises(HistoryUnavailable, match="removed files"):
                stale.scan(**ask).count()
        assert stale.refresh().scan().count() == 2 * COUNT

    @pytest.mark.parametrize("options", [{}, NO_METADATA])
    @pytest.mark.parametrize(("version", "kind"), [(6, "mor"), (8, "cow"), (9, "mor")])
    def test_earlier_times_of_an_older_handle(
        self, tmp_path: Path, version: int, kind: Any, options: dict[str, str]
    ) -> None:
        table = TABLE.make(tmp_path, version=version, kind=kind, options=options)
        times = [table.upsert(rows(v)).instant for v in (1, 2, 3)]
        if kind == "mor":
            table.compact()
        times.append(table.upsert(rows(4, first=200)).instant)
        older = pyhudi.open_table(tmp_path, options=options)
        assert older.scan(as_of=times[0]).count() == COUNT
        now = pyhudi.open_table(tmp_path)
        now.upsert(rows(5, first=200))
        now.clean(retain=2)
        with pytest.raises(HistoryUnavailable, match="removed files"):
            older.scan(as_of=times[0]).to_arrow()
        with pytest.raises(HistoryUnavailable, match="removed files"):
            older.diff(times[0], times[3]).to_arrow()
        assert older.scan(as_of=times[3]).count() == 2 * COUNT

    def test_known_clean_keeps_snapshot(self) -> None:
        then = timeline(f"{t(1)}.commit", contents=clean(2, t(9)))
        check_snapshot_readable(then, then)

    def test_empty_clean_is_ignored(self) -> None:
        then = timeline(f"{t(1)}.commit")
        nothing = {f"{t(2)}.clean": {"earliestCommitToRetain": "", "totalFilesDeleted": 0}}
        check_snapshot_readable(then, timeline(f"{t(1)}.commit", contents=nothing))

    def test_stale_handle_reports_rolled_back_commit(self) -> None:
        then = timeline(f"{t(1)}.commit", f"{t(2)}.commit")
        now = timeline(f"{t(1)}.commit", f"{t(3)}.rollback")
        with pytest.raises(HistoryUnavailable, match=t(2)):
            check_snapshot_readable(then, now)

    def test_archived_commits_are_still_there(self) -> None:
        then = timeline(f"{t(1)}.commit", f"{t(2)}.commit")
        check_snapshot_readable(then, timeline(f"{t(2)}.commit", f"{t(3)}.commit"))

    def test_stale_handle_reports_unknown_instant(self) -> None:
        then = timeline(f"{t(1)}.commit", f"{t(2)}.commit")
        with pytest.raises(HistoryUnavailable, match=f"{t(2)}.*recreated"):
            check_snapshot_readable(then, timeline(f"{t(3)}.commit"))


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("options", [{}, NO_METADATA], ids=["metadata", "listed"])
def test_stale_handle_reports_recreated_table(
    tmp_path: Path, version: Any, options: dict[str, str]
) -> None:
    table = TABLE.make(tmp_path, version=version, kind="cow", options=options)
    table.upsert(rows(1))
    held = pyhudi.open_table(tmp_path, options=options)
    scan = held.scan()
    pyhudi.create_table(
        tmp_path, rows(2), key="id", partition_by="part", version=version, mode="overwrite",
        options=options,
    )  # fmt: skip
    reads: list[Callable[[], Any]] = [
        scan.to_arrow, held.count, held.scan(where="v = 1").to_arrow, held.scan().splits,
    ]  # fmt: skip
    for read in reads:
        with pytest.raises(HistoryUnavailable, match="recreated"):
            read()
    assert held.refresh().count() == COUNT


# On version 6 the new metadata table lacks a commit.
@pytest.mark.filterwarnings("ignore::pyhudi.errors.MetadataTableWarning")
@pytest.mark.parametrize("version", [6, 8, 9])
def test_stale_handle_reports_recreated_empty_table(tmp_path: Path, version: Any) -> None:
    TABLE.make(tmp_path, version=version, kind="mor").upsert(rows(1))
    held = pyhudi.open_table(tmp_path)
    shutil.rmtree(tmp_path)
    TABLE.make(tmp_path, version=version, kind="mor")
    with pytest.raises(HistoryUnavailable, match="recreated"):
        held.count()
    assert held.refresh().count() == 0


def overwritten(base: Path, kind: Any) -> None:
    axes: dict[str, Any] = {"key": "id", "partition_by": "part", "type": kind}
    pyhudi.create_table(base, rows(2), mode="overwrite", **axes)


def cleaned(base: Path, kind: Any) -> None:
    table = pyhudi.open_table(base)
    table.overwrite(rows(2))
    table.upsert(rows(3))
    table.clean(policy="KEEP_LATEST_FILE_VERSIONS", retain=1)


def removed(base: Path, kind: Any) -> None:
    shutil.rmtree(base)


GONE: dict[str, Callable[[Path, Any], None]] = {
    "overwritten": overwritten,
    "cleaned": cleaned,
    "removed": removed,
}


@pytest.mark.parametrize(("kind", "gone"), pairwise(("cow", "mor"), [*GONE]))
def test_inspect_reports_unavailable_snapshot(tmp_path: Path, kind: Any, gone: str) -> None:
    base = tmp_path / "t"
    TABLE.make(base, version=9, kind=kind).upsert(rows(1))
    held = pyhudi.open_table(base)
    inspect = held.inspect
    shown: list[Callable[[], Any]] = [
        inspect.slices, inspect.partitions, inspect.logs, inspect.health,
    ]  # fmt: skip
    for show in shown:
        show()
    GONE[gone](base, kind)
    for show in shown:
        with pytest.raises(HistoryUnavailable, match="after you opened the table"):
            show()
    page = io.StringIO()
    held.report(page)
    assert "after you opened the table" in page.getvalue()
    assert held._repr_html_()


def remade(base: Path) -> HudiTable:
    """Of the table at a path, with a metadata table of nothing but first files."""
    table = pyhudi.open_table(base)
    table.rebuild_metadata()
    return table


SINCE: dict[str, Callable[[HudiTable], object]] = {
    "upsert": lambda table: table.upsert(rows(2)),
    "overwrite_partitions": lambda table: table.overwrite_partitions(rows(2)),
    "delete": lambda table: table.delete("v = 1"),
}


class TestMetadataMadeAnew:
    """The first files of a metadata table have names that come again, with other contents."""

    @pytest.mark.parametrize(
        ("version", "kind", "change"), pairwise((6, 8, 9), ("cow", "mor"), [*SINCE])
    )
    def test_stale_lookup_finds_rows_of_its_snapshot(
        self, tmp_path: Path, version: int, kind: Any, change: str
    ) -> None:
        make(tmp_path, "simple", version, kind, named=False)
        remade(tmp_path)
        held = pyhudi.open_table(tmp_path)
        assert answers(lambda where: held.scan(where=where)) == EXPECTED
        SINCE[change](pyhudi.open_table(tmp_path))
        remade(tmp_path)
        assert answers(lambda where: held.scan(where=where)) == EXPECTED
        assert held.scan().count() == COUNT

    @pytest.mark.parametrize("version", [6, 8, 9])
    def test_stale_lookup_reports_rolled_back_commit(self, tmp_path: Path, version: int) -> None:
        TABLE.make(tmp_path, version=version, kind="cow").upsert(rows(1))
        last = pyhudi.open_table(tmp_path).upsert(rows(1, first=200))
        remade(tmp_path)
        held = pyhudi.open_table(tmp_path)
        assert held.count() == 2 * COUNT
        pyhudi.open_table(tmp_path).rollback(last.instant)
        with pytest.raises(HistoryUnavailable, match="rolled back"):
            held.scan().to_arrow()
        assert held.refresh().count() == COUNT

    def test_stale_lookup_works_after_commit_without_files(self, tmp_path: Path) -> None:
        make(tmp_path, "simple", 9, "cow", named=False)
        remade(tmp_path).alter().add_column("more", pa.int64()).execute()
        held = pyhudi.open_table(tmp_path)
        assert answers(lambda where: held.scan(where=where)) == EXPECTED
        given = rows(2).append_column("more", pa.nulls(COUNT, pa.int64()))
        pyhudi.open_table(tmp_path).overwrite_partitions(given)
        remade(tmp_path)
        assert answers(lambda where: held.scan(where=where)) == EXPECTED

    # An index whose files have other sizes now is missed before all of it is.
    @pytest.mark.filterwarnings("ignore::pyhudi.errors.MetadataTableWarning")
    @pytest.mark.parametrize("where", WHERES)
    def test_while_it_is_read(
        self, tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        make(tmp_path, "simple", 9, "cow", named=False)
        held = remade(tmp_path)
        data_partitions = MetadataTable.data_partitions

        def after_others(self: MetadataTable) -> list[str]:
            monkeypatch.undo()
            pyhudi.open_table(tmp_path).overwrite_partitions(rows(2))
            remade(tmp_path)
            return data_partitions(self)

        monkeypatch.setattr(MetadataTable, "data_partitions", after_others)
        assert held.scan(where=where).count() == EXPECTED[where]


class TestIndexMadeAnew:
    """Its first files bear instants that are before the start of the handle's metadata timeline."""

    OPTIONS: ClassVar[dict[str, str]] = {
        "hoodie.metadata.index.column.stats.enable": "false",
        "hoodie.metadata.compact.max.delta.commits": "4",
        "hoodie.clean.automatic": "false",
        "hoodie.clean.commits.retained": "1",
        "hoodie.keep.min.commits": "3",
        "hoodie.keep.max.commits": "4",
    }

    def make(self, base: Path, version: int) -> HudiTable:
        """A table whose metadata table has archived its initial commits."""
        axes: dict[str, Any] = {"version": version, "kind": "cow", "options": self.OPTIONS}
        table = TABLE.make(base, index="record_index", **axes)
        table.upsert(TABLE.rows([0, 1], part="p0"))
        table.upsert(TABLE.rows([2], part="p1"))
        self.archive(table)
        return table

    def archive(self, table: HudiTable) -> None:
        for turn in range(12):
            table.update("id = 'k002'", {"v": str(turn + 10)})
        assert not initial_commits(table)

    def move(self, base: Path) -> None:
        """Brings a row to another partition and makes the index anew."""
        few = {"hoodie.archive.automatic": "false"}
        few |= {"hoodie.metadata.compact.max.delta.commits": "50"}
        table = pyhudi.open_table(base, options={**self.OPTIONS, **few})
        table.delete("id = 'k000'")
        table.upsert(TABLE.rows([0], part="p1", v=5))
        table.drop_index("record_index")
        table.create_index("record_index")

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("version", "where", "archived", "instant"),
        pairwise((8, 9), ("v = 1", "id = 'k000'"), (False, True), ("new", "same")),
    )
    def test_stale_lookup_finds_row_of_its_snapshot(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int, where: str,
        archived: bool, instant: str,
    ) -> None:  # fmt: skip
        if instant == "same":
            monkeypatch.setattr(PartitionBuild, "_instant", free_instant)
        table = self.make(tmp_path, version)
        held = pyhudi.open_table(tmp_path)
        assert held.scan(where=where).count() > 0
        self.move(tmp_path)
        assert initial_commits(table)
        if archived:
            self.archive(pyhudi.open_table(tmp_path, options=self.OPTIONS))
        assert held.scan(where="id = 'k000'").to_arrow()["v"].to_pylist() == [1]
        assert held.refresh().scan(where="id = 'k000'").to_arrow()["v"].to_pylist() == [5]

    @pytest.mark.parametrize("version", [8, 9])
    def test_its_instant_was_never_taken(self, tmp_path: Path, version: int) -> None:
        table = self.make(tmp_path, version)
        archive = metadata_table(table.state.storage).timeline.archive
        taken = {instant.requested for instant in archive.instants()}
        self.move(tmp_path)
        assert initial_commits(table) == ["00000000000000002"]
        assert "00000000000000001" in taken


def initial_commits(table: HudiTable) -> list[str]:
    """Of the metadata table, as far as they are active."""
    times = (instant.requested for instant in metadata_table(table.state.storage).timeline.commits)
    return [time for time in times if is_initial_time(time)]


def free_instant(making: PartitionBuild) -> str:
    """As Hudi chooses one: the first that the active timeline does not know."""
    known = {instant.requested for instant in making.metadata_table.timeline.instants}
    return next(time for time in (f"{number:017d}" for number in count()) if time not in known)


def test_stale_handle_reads_after_archive(tmp_path: Path) -> None:
    keeps = {
        "hoodie.keep.min.commits": "4", "hoodie.keep.max.commits": "5",
        "hoodie.clean.commits.retained": "3", "hoodie.clean.automatic": "false",
    }  # fmt: skip
    for version in (6, 9):
        base = tmp_path / str(version)
        table = TABLE.make(base, version=version, kind="cow", options=keeps)
        table.upsert(rows(1))
        held = pyhudi.open_table(base, options=keeps)
        for turn in range(8):
            table.upsert(rows(2, first=COUNT * (turn + 1)))
        first = held.inspect.timeline()["requested"][0].as_py()
        assert first < pyhudi.open_table(base).inspect.timeline()["requested"][0].as_py()
        assert held.count() == COUNT


def test_timeline_is_newer_only_with_new_instants(tmp_path: Path) -> None:
    table = make(tmp_path, "simple", 9, "cow")
    state = table.state
    assert newer_timeline(state.storage, state.config, state.timeline) is None
    pyhudi.open_table(tmp_path).upsert(rows(2))
    later = newer_timeline(state.storage, state.config, state.timeline)
    assert later is not None
    assert len(later.commits) == len(state.timeline.commits) + 1
