"""How tables, lazy rows and results look: the first rows, short texts, HTML for notebooks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import polars
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pyhudi
from pyhudi import ConfigError, HudiTable, LocalEngine
from pyhudi.api.notebook_html import table_html
from pyhudi.api.notebook_html.html import Html, rows_grid, tag
from tests.helpers.html_pages import Page
from tests.helpers.table_builder import SMALL, TableBuilder
from tests.helpers.tables import unpack

FILES = 12
HOSTILE = "<script>alert('x')</script>&amp;\"'"
TABLE = TableBuilder(
    {
        "id": (pa.string(), lambda number: f"k{number:03}"),
        "part": (pa.string(), lambda number: f"p{number % FILES:02}"),
        "note": (pa.string(), "n"),
        "v": (pa.int64(), lambda number: number),
    },
    partition_by="part",
    order_by="v",
    metadata=False,
    options=SMALL,
    first=range(10 * FILES),
)


class Watched(LocalEngine):
    """An engine that notes which tasks of scans were begun."""

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        self.begun: list[Any] = []

    def scan(
        self,
        work: Callable[[Any], Iterator[pa.RecordBatch]],
        tasks: Sequence[Any],
        schema: pa.Schema,
        *,
        label: str = "",
    ) -> pa.RecordBatchReader:
        def noted(task: Any) -> Iterator[pa.RecordBatch]:
            self.begun.append(task)
            yield from work(task)

        return super().scan(noted, tasks, schema, label=label)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("plain") / "t"
    TABLE.make(base)
    return base


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> HudiTable:
    """A table with an insert, an update of one row, and a delete of two."""
    base = tmp_path_factory.mktemp("changed") / "t"
    named = {"hoodie.table.name": HOSTILE}
    table = TABLE.make(base, kind="mor", options=named, first=range(24))
    table.upsert(TABLE.rows([3, 200], note=HOSTILE, v=lambda number: 1000 + number))
    table.delete("id in ('k005', 'k006')")
    return table


@pytest.mark.parametrize("threads", [1, 8])
@pytest.mark.parametrize(("rows", "files"), [(0, 0), (1, 1), (10, 1), (11, 3), (31, 7)])
def test_few_rows_come_from_few_files(plain: Path, threads: int, rows: int, files: int) -> None:
    engine = Watched(threads)
    table = pyhudi.open_table(plain, engine=engine)
    whole = table.scan().to_arrow()
    engine.begun.clear()
    assert table.head(rows).to_pylist() == whole.slice(0, rows).to_pylist()
    assert len(engine.begun) <= files
    engine.begun.clear()
    assert table.scan(limit=rows).to_arrow().num_rows == rows
    assert len(engine.begun) <= files
    engine.begun.clear()
    assert table.scan(where="v >= 0", limit=2).head(rows).num_rows == min(rows, 2)
    assert len(engine.begun) <= 1


def test_head_returns_all_rows_in_order_above_table_size(plain: Path) -> None:
    table = pyhudi.open_table(plain)
    whole = table.scan().to_arrow().to_pylist()
    assert table.scan(limit=10_000).to_arrow().to_pylist() == whole
    assert table.head(10_000).to_pylist() == whole
    assert table.scan(where="v < 0").head().num_rows == 0


def test_rows_are_counted(plain: Path) -> None:
    table = pyhudi.open_table(plain)
    assert table.count() == len(table) == len(table.scan()) == 10 * FILES
    assert table.count("v < 7") == len(table.scan(where="v < 7")) == 7


def test_repr_reads_no_rows(plain: Path) -> None:
    engine = Watched(2)
    table = pyhudi.open_table(plain, engine=engine)
    scan = table.scan(where="v < 0")
    assert bool(table)
    assert bool(scan)
    assert scan._repr_html_()
    assert repr(scan)
    assert repr(table)
    assert table._repr_html_()
    assert engine.begun == []


def test_arrow_stream_reads_scan_once(plain: Path) -> None:
    engine = Watched(2)
    scan = pyhudi.open_table(plain, engine=engine).scan()
    taken: tuple[Callable[[Any], Any], ...] = (
        pa.table,
        polars.DataFrame,
        lambda rows: duckdb.connect().from_arrow(rows.to_reader()).fetchall(),
        lambda rows: pyhudi.show(rows, 10_000),
    )
    for take in taken:
        engine.begun.clear()
        take(scan)
        assert len(engine.begun) == len(scan.tasks) == FILES


def test_changes_and_differences_have_a_head(changed: HudiTable, tmp_path: Path) -> None:
    first, *_, last = changed.inspect.commits()["requested"].to_pylist()
    diff = changed.diff(first, last)
    assert len(diff) == diff.to_arrow().num_rows == 4
    assert diff.head(1).num_rows == 1
    changes = pyhudi.open_table(unpack("v9_cow_cdc_data_before_after", tmp_path)).changes()
    assert changes.head(2).to_pylist() == changes.to_arrow().slice(0, 2).to_pylist()
    assert changes.head(0).num_rows == 0
    page = Page(changes._repr_html_())
    told = dict(row for row in page.rows if len(row) == 2)
    tasks = changes.plan()
    commits = len(set(tasks["instant"].to_pylist()))
    assert told["to read"].startswith(f"{tasks.num_rows} file groups of {commits} commit")
    assert told["range"] == "after the beginning, up to the last commit"
    assert told["op"] == "string"
    assert repr(changes).startswith("<Changes of ")


@pytest.mark.parametrize("wrong", [-1, "3", 1.5, None, True])
def test_head_refuses_bad_number(plain: Path, wrong: Any) -> None:
    table = pyhudi.open_table(plain)
    for call in (table.head, table.scan().head, lambda n: pyhudi.show(table, n)):
        with pytest.raises(ConfigError):
            call(wrong)


def test_short_texts_say_what_counts(changed: HudiTable) -> None:
    table = changed
    assert "mor, version 9, key id, partitioned by part, last commit 20" in repr(table)
    assert repr(table.scan(["id"], "v > 5", limit=3)).endswith("id; where (v > 5); at most 3 rows>")
    first, *_, last = table.inspect.commits()["requested"].to_pylist()
    completed = table.inspect.commits()["completed"][0].as_py()
    assert f"after {completed}, up to the last commit" in repr(table.incremental(start=first))
    assert repr(table.diff(first, last)).endswith(f"{first} to {last}>")
    result = table.upsert(TABLE.rows([7]))
    assert f"UPSERT {result.instant}: 0 inserted, 1 updated, 0 deleted; 1 file of" in repr(result)
    assert "no commit" in repr(table.delete("v < -5"))
    assert "compact, dry run: read " in repr(table.compact(dry_run=True))
    assert repr(table.inspect.health()) == str(table.inspect.health())
    assert "1 clause," in repr(table.merge(TABLE.rows([1])).when_matched_update_all())
    kept = [table, table.scan(), table.incremental(), result, table.inspect.health()]
    assert [len(repr(one)) for one in kept if len(repr(one)) > 700] == []


def test_wide_table_has_short_repr(tmp_path: Path) -> None:
    wide = pa.schema([(f"column_{number:04}", pa.string()) for number in range(300)])
    table = pyhudi.create_table(
        tmp_path / "t", wide, key="column_0000", options={"hoodie.metadata.enable": "false"}
    )
    assert "and 292 more" in repr(table.scan())
    assert "last commit" not in repr(table)
    assert "no commit yet" in repr(table)
    assert len(Page(table._repr_html_()).all("code")) < 120


def test_table_html_describes_table(changed: HudiTable) -> None:
    page = Page(changed._repr_html_())
    rows = page.rows
    assert ["record key", "id"] in rows
    assert ["partitioned by", "part"] in rows
    assert ["id", "string", "", "key"] in rows
    assert ["v", "int64", "", "ordering"] in rows
    assert [element.text for element in page.all("b")] == [HOSTILE]
    assert page.all("script") == []


def test_scan_html_describes_scan(changed: HudiTable) -> None:
    scan = changed.scan(["id"], [("note", "!=", HOSTILE)], limit=3)
    rows = Page(scan._repr_html_()).rows
    slices = scan.plan().num_rows
    told = dict(row for row in rows if len(row) == 2)
    assert told["limit"] == "3 rows"
    assert told["to read"].startswith(f"{slices} file slices of ")
    assert "<script>alert(" in told["where"]


def test_scan_html_shows_error(tmp_path: Path) -> None:
    table = pyhudi.open_table(unpack("v6_mor_inflight", tmp_path))
    first = table.inspect.commits()["requested"][0].as_py()
    scan = table.incremental(start=first)
    with pytest.raises(pyhudi.HistoryUnavailable):
        scan.to_arrow()
    assert "HistoryUnavailable" in Page(scan._repr_html_()).source


def test_diff_html_shows_counts_and_rows(
    changed: HudiTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = changed.inspect.commits()["requested"][0].as_py()
    second = changed.inspect.commits()["requested"][2].as_py()
    diff = changed.diff(first, second)
    page = Page(diff._repr_html_())
    badges = [element.text for element in page.all("span", "badge")]
    assert {"1 inserted", "1 updated", "2 deleted"} < set(badges)
    updated = next(row for row in page.rows if row[0] == "updated")
    assert updated[1] == "k003"
    assert f"note: n → {HOSTILE}" in updated[2]
    assert "v: 3 → 1003" in updated[2]
    monkeypatch.setattr(table_html, "_MAX_BYTES_TO_READ", 0)
    unread = Page(diff._repr_html_())
    assert "not read yet" in [element.text for element in unread.all("span", "badge")]
    assert not any("inserted" in element.text for element in unread.all("span", "badge"))


def test_results_tell_notebooks_what_was_done(changed: HudiTable) -> None:
    result = changed.upsert(TABLE.rows([9], part=HOSTILE.replace("/", "")))
    told = dict(row for row in Page(result._repr_html_()).rows if len(row) == 2)
    assert told["instant"] == result.instant
    assert told["rows inserted"] == f"{result.rows_inserted}"
    assert told["partitions"] == result.partitions[0]
    health = changed.inspect.health()
    told = dict(row for row in Page(health._repr_html_()).rows if len(row) == 2)
    assert told["file groups"] == f"{health.file_groups}"
    for shown in (
        changed.compact(dry_run=True),
        changed.clean(dry_run=True),
        changed.maintain(dry_run=True),
        changed.scan(where="v = 3").explain(),
        changed.check(),
        changed.downgrade(8, dry_run=True),
        changed.rollback(result.instant, dry_run=True),
    ):
        page = Page(shown._repr_html_())
        assert page.all("b")
        assert page.all("script") == []


def test_findings_are_shown_the_first_of_many(tmp_path: Path) -> None:
    table = TABLE.make(tmp_path / "t", first=range(FILES))
    for file in sorted((tmp_path / "t").glob("*/*.parquet")):
        file.unlink()
    found = table.refresh().check()
    assert len(found.errors) == FILES
    assert repr(found).splitlines()[-1] == "and 3 more"
    rows = [row for row in Page(found._repr_html_()).rows if row[0] == "error"]
    assert len(rows) == FILES


def test_history_and_timeline_are_shown_with_their_picture(changed: HudiTable) -> None:
    history, timeline = changed.history(), changed.inspect.timeline()
    for rows in (history, timeline):
        page = Page(pyhudi.show(rows, 2)._repr_html_())
        assert len(page.all("path", "mark")) == rows.num_rows
        assert len([row for row in page.rows if len(row) == rows.num_columns]) == 1 + 2
        assert f"the first 2 of {rows.num_rows} rows" in page.all("p")[-1].text
    assert len(Page(changed.inspect._repr_html_()).all("path", "mark")) == timeline.num_rows
    text = repr(pyhudi.show(history, 1)).splitlines()
    assert text[0].split() == history.column_names
    assert history["instant"][0].as_py() in text[1]
    assert text[2] == f"and {history.num_rows - 1} more rows"


def test_show_escapes_terminal_codes() -> None:
    rows = pa.table({"a\x1b": ["x\x1b[31my", "\x9b2J", "one\ttwo\n\x07\x7f", "osaka é 東京"]})
    lines = repr(pyhudi.show(rows)).splitlines()
    assert lines == ["a\\x1b", "x\\x1b[31my", "\\x9b2J", "one two \\x07\\x7f", "osaka é 東京"]


def test_show_aligns_numbers_to_the_right() -> None:
    fares = pa.array([7.5, 20.0, None])
    exact = fares.cast(pa.decimal128(5, 2))
    rows = pa.table({"id": ["a", "b", "c"], "fare": fares, "exact": exact})
    assert repr(pyhudi.show(rows)).splitlines() == [
        "id  fare  exact",
        "a    7.5   7.50",
        "b   20.0  20.00",
        "c",
    ]


def test_show_accepts_any_arrow_stream(changed: HudiTable) -> None:
    for rows in (changed, changed.scan(), changed.scan().to_arrow(), changed.scan().to_reader()):
        shown = pyhudi.show(rows, 3)
        assert shown.rows.slice(0, 3).num_rows == 3
        assert Page(shown._repr_html_()).all("svg") == []
    assert repr(pyhudi.show(pa.table({"a": pa.array([], pa.int64())}))) == "a"
    assert repr(pyhudi.show(pa.table({}))) == ""
    with pytest.raises(ConfigError, match="Arrow stream"):
        pyhudi.show("rows")


def test_dates_that_python_has_no_form_of_are_shown(tmp_path: Path) -> None:
    days = pa.array([0, 4_000_000], pa.int32()).cast(pa.date32())
    lists = pa.ListArray.from_arrays([0, 1, 2], days)
    far = pa.array([0, 2**60]).cast(pa.timestamp("us"))
    rows = pa.table({"id": [1, 2], "d": days, "lists": lists, "t": far})
    shown = pyhudi.show(rows)
    for text in (repr(shown), shown._repr_html_()):
        assert text.count("12921-08-18") == 2
        assert "1970-01-01" in text
    table = pyhudi.create_table(tmp_path / "t", rows.slice(0, 1), key="id")
    first = table.history(limit=1).to_pylist()[0]["instant"]
    table.upsert(rows)
    last = table.history(limit=1).to_pylist()[0]["instant"]
    assert "12921-08-18" in table.diff(first, last)._repr_html_()


def test_values_of_all_kinds_are_shown() -> None:
    rows = pa.table(
        [
            pa.array([None, "x" * 500]),
            pa.array([b"\x00\xff", None]),
            pa.array([[1, None], None]),
            pa.array([{"a": HOSTILE}, None]),
        ],
        names=["same", "same", "list", "struct"],
    )
    page = Page(rows_grid(rows, 5))
    assert page.rows[0] == ["same", "same", "list", "struct"]
    assert page.rows[1][:3] == ["null", "00ff", "[1, None]"]
    assert len(page.rows[2][0]) == 80
    assert page.all("script") == []


@settings(max_examples=60, deadline=None)
@given(st.text())
def test_html_escapes_text(text: str) -> None:
    made = tag("p", text, title=text)
    made.encode()
    page = Page(made)
    assert [element.name for element in page.elements] == ["p"]
    shown = page.elements[0].text
    assert shown == page.elements[0].attributes["title"]
    # Line ends are the parser's, and what no HTML may have is replaced by one sign.
    assert [a for a, b in zip(shown, text, strict=True) if a not in (b, "\ufffd")] == []


def test_html_is_not_escaped_twice() -> None:
    assert tag("p", Html("<b>x</b>"), "<b>") == "<p><b>x</b>&lt;b&gt;</p>"
