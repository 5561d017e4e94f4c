"""The page about a table: what it shows is what `inspect` says, and it needs nothing beside it."""

from __future__ import annotations

import io
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import ConfigError, HudiTable
from pyhudi.api.html_report.charts import HEIGHT, WIDTH, partitions_of, storage_map
from pyhudi.api.notebook_html.style import LOG
from pyhudi.api.notebook_html.timeline_picture import timeline_picture
from pyhudi.clock import format_instant
from pyhudi.config.actions import Instant, State
from pyhudi.slices.file_slice import BaseFile, FileSlice, LogFile
from tests.helpers.html_pages import Page
from tests.helpers.table_builder import SMALL, TableBuilder
from tests.helpers.tables import unpack

HOSTILE = "<script>alert('x')</script>&amp;\"'"
TABLE = TableBuilder(
    {
        "id": (pa.string(), lambda number: f"k{number:03}"),
        "part": (pa.string(), lambda number: f"p{number % 3}"),
        "v": (pa.int64(), lambda number: number),
    },
    partition_by="part",
    order_by="v",
    options=SMALL,
)
GOLDEN = (
    "v4_mor_archived",
    "v6_cow_empty",
    "v6_mor_compaction",
    "v6_mor_inflight",
    "v6_cow_clustering",
    "v8_mor_inflight",
    "v9_cow_bootstrap_row_groups",
    "v9_cow_nonpart",
    "v9_mor_log_compaction",
    "v9_mor_rollback",
    "v9_mor_restore",
)
"""Of each version, of both types, with every kind of instant among them."""


def reported(table: HudiTable) -> Page:
    return Page(table.report(io.StringIO()))


@pytest.mark.parametrize(
    ("name", "is_whole"), [("v9_cow_nonpart", True), ("v9_mor_archived", False)]
)
def test_sum_of_rows_says_from_when_it_is(name: str, is_whole: bool, tmp_path: Path) -> None:
    """Rows of archived commits are not in it."""
    table = pyhudi.open_table(unpack(name, tmp_path))
    page = io.StringIO()
    table.report(page)
    assert ("Rows inserted less deleted, in sum" in page.getvalue()) == is_whole
    since = "Rows inserted less deleted since 20"
    assert (since in page.getvalue()) == (not is_whole)


@pytest.mark.parametrize("name", GOLDEN)
def test_report_matches_inspect(name: str, tmp_path: Path) -> None:
    table = pyhudi.open_table(unpack(name, tmp_path))
    page = reported(table)
    assert page.elsewhere == []
    assert len(page.source.encode()) < 500_000
    assert page.all("p", "problem") == []
    health, timeline = table.inspect.health(), table.inspect.timeline()
    figures = page.figures
    assert figures == {name: getattr(health, name) for name in figures}
    assert {"file_groups", "base_bytes", "log_bytes", "active_instants"} < set(figures)
    marks = page.all("path", "mark")
    # Twice: by time, and one after the other.
    assert len(marks) == 2 * timeline.num_rows
    pending = timeline.filter(pa.compute.not_equal(timeline["state"], "COMPLETED"))
    assert sum(mark.has_class("open") for mark in marks) == 2 * pending.num_rows
    assert [one.text[:-1] for one in page.all("p") if one.text[:-1] in advised(health)] == list(
        advised(health)
    )
    partitions = table.inspect.partitions().to_pylist()
    rows = {row[0]: row for row in page.rows if len(row) == 5}
    for partition in partitions:
        if partition["file_groups"]:
            row = rows[partition["partition"] or "(no partition)"]
            assert row[1:3] == [f"{partition['file_groups']}", f"{partition['log_files']}"]
    history = table.history().to_pylist()
    shown = [row for row in page.rows if len(row) == 9][1:]
    assert [row[0].translate(PLAIN) for row in shown] == [row["instant"] for row in history]


PLAIN = str.maketrans("", "", "-: .")


def advised(health: Any) -> dict[str, None]:
    return {one.reason[0].upper() + one.reason[1:]: None for one in health.advice}


def test_kinds_of_work_have_their_lanes(tmp_path: Path) -> None:
    table = TABLE.make(tmp_path / "t", kind="mor", first=range(9))
    table.upsert(TABLE.rows(range(9), v=100))
    table.savepoint("kept")
    table.compact()
    table.upsert(TABLE.rows(range(5), v=200))
    table.compact(execute=False)
    page = reported(table)
    labels = [element.text for element in page.all("text")]
    for lane in ("deltacommit", "compaction", "savepoint"):
        assert lane in labels
    assert "commit" not in labels
    assert "2 (1 open)" in labels
    titles = [element.text for element in page.all("title")]
    assert any("waits for a compaction" in title for title in titles)
    orange = [one for one in page.all("rect") if one.attributes["fill"] == LOG]
    orange = [one for one in orange if not one.has_class("mark")]
    slices_with_logs = sum(bool(logs) for logs in table.scan().plan()["log_files"].to_pylist())
    assert len(orange) == slices_with_logs > 0
    charts = {one.attributes["aria-label"]: one for one in page.all("svg")}
    assert (
        "inserted: 9\nupdated: 0\ndeleted: 0" in charts["inserted, updated, deleted by commit"].text
    )
    assert "rows: 9" in charts["rows by commit"].text


def test_report_of_empty_table_renders(tmp_path: Path) -> None:
    page = reported(TABLE.make(tmp_path / "t"))
    assert page.figures["file_groups"] == page.figures["active_instants"] == 0
    told = [element.text for element in page.all("p", "note")]
    assert {"No instants yet.", "No file groups yet.", "No commits yet."} < set(told)


def test_names_and_values_are_no_html(tmp_path: Path) -> None:
    rows = TABLE.rows(range(3), part=HOSTILE.replace("/", ""))
    table = TABLE.make(tmp_path / "t", options={"hoodie.table.name": HOSTILE}, first=rows)
    table.savepoint(HOSTILE)
    page = reported(table)
    assert len(page.all("script")) == 1
    assert page.all("h1")[0].text == HOSTILE
    assert page.all("title")[0].text == f"{HOSTILE}: Hudi table"
    cells = [cell for row in page.rows for cell in row]
    assert HOSTILE.replace("/", "") in cells
    assert f"comment: {HOSTILE}; saved_by: pyhudi" in cells


def test_damage_is_told_and_the_rest_is_shown(tmp_path: Path) -> None:
    table = TABLE.make(tmp_path / "t", first=range(9))
    commit = table.inspect.timeline()["file"][0].as_py()
    table.upsert(TABLE.rows(range(3)))
    (tmp_path / "t" / ".hoodie" / "timeline" / commit).write_bytes(b"Obj\x01 damaged")
    (tmp_path / "t" / ".hoodie" / "metadata" / ".hoodie" / "hoodie.properties").unlink()
    page = reported(pyhudi.open_table(tmp_path / "t"))
    problems = [element.text for element in page.all("p", "problem")]
    assert any(problem.startswith("commits: ") and commit in problem for problem in problems)
    states = [element.text for element in page.all("span", "problem")]
    assert states
    assert all("is missing" in state for state in states)
    assert len(page.all("path", "mark")) == 2 * 2


def test_report_shows_snapshot_of_handle(tmp_path: Path) -> None:
    table = TABLE.make(tmp_path / "t", first=range(9))
    first = table.state.timeline.commits[0].requested
    table.upsert(TABLE.rows(range(3)))
    page = reported(pyhudi.open_table(tmp_path / "t", as_of=first))
    assert page.figures["active_instants"] == 1
    assert any(badge.text.startswith("as of ") for badge in page.all("span", "badge"))


def test_report_accepts_path_or_open_file(tmp_path: Path) -> None:
    table = TABLE.make(tmp_path / "t", metadata=False)
    page = tmp_path / "page.html"
    assert table.report(page) == str(page)
    assert table.report(str(page)) == str(page)
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>")
    raw, written = io.BytesIO(), io.StringIO()
    assert table.report(raw) == raw.getvalue().decode()
    assert table.report(written) == written.getvalue()
    for wrong in (tmp_path, tmp_path / "none" / "page.html", "", 5, None):
        with pytest.raises(ConfigError):
            table.report(wrong)  # type: ignore[arg-type]


def test_ten_thousand_instants_make_a_small_picture() -> None:
    actions = ("deltacommit", "clean", "rollback", "compaction", "an action of the future")
    instants = [
        instant(number, actions[number % len(actions)], done=number % 1000 != 7)
        for number in range(10_000)
    ]
    for by_order in (False, True):
        drawn = timeline_picture(
            instants, {}, merge_on_read=True, with_ends=True, by_order=by_order
        )
        assert len(drawn) < 400_000
        page = Page(drawn)
        assert len(page.all("path", "open")) == 10
        bins = [title.text.split()[0] for title in page.all("title") if title.text[0].isdigit()]
        assert sum(map(int, bins)) == 10_000
        assert len(bins) < 2500
        assert {"2,000 (10 open)", "2,000"} <= {text.text for text in page.all("text")}


def test_instants_that_are_no_times_and_all_at_once_are_drawn() -> None:
    odd = [Instant("00000000000001", "commit", State.COMPLETED, None, "")]
    at_once = [instant(5, "commit"), instant(5, "clean")]
    backwards = [replace(instant(7, "commit"), completed="20200101000000000")]
    for some in (odd, at_once, backwards, [*odd, *at_once]):
        page = Page(timeline_picture(some, {}, merge_on_read=False, with_ends=True))
        assert len(page.all("path", "mark")) == len(some)
        assert "nan" not in page.source


def test_storage_map_limits_boxes() -> None:
    """Of 400 partitions 60 are drawn, and of their file groups the 2,000 largest."""
    seed = random.Random(4)
    slices = [
        file_slice(f"day={number % 400:04}", number, seed.randrange(1, 1 << 27), 1 << 26)
        for number in range(20_000)
    ]
    slices.append(file_slice("without/bytes", 1, 0, 0))
    drawn = storage_map(partitions_of(slices), {slices[0].key: "clustering"})
    assert len(drawn.cells) < 2100
    assert sum("more partitions" in cell.title for cell in drawn.cells) == 1
    assert all(cell.box.left >= 0 and cell.box.top >= 0 for cell in drawn.cells)
    assert all(cell.box.left + cell.box.width <= WIDTH + 1 for cell in drawn.cells)
    assert all(cell.box.top + cell.box.height <= HEIGHT + 1 for cell in drawn.cells)


def test_storage_map_areas_follow_sizes() -> None:
    """One byte next to 16 PiB is no division by zero."""
    sizes = [1 << 30, 3 << 30, 1 << 54, 1]
    slices = [file_slice("p", number, size, 0) for number, size in enumerate(sizes[:2])]
    small, large = sorted(
        cell.box.width * cell.box.height for cell in storage_map(partitions_of(slices), {}).cells
    )
    assert large == pytest.approx(3 * small)
    slices = [file_slice("p", number, size, 0) for number, size in enumerate(sizes)]
    assert len(storage_map(partitions_of(slices), {}).cells) == len(sizes)


def test_report_charts_do_not_depend_on_matplotlib_settings(tmp_path: Path) -> None:
    import matplotlib

    table = TABLE.make(tmp_path / "t", first=range(9))
    first, second = reported(table).all("svg"), None
    with matplotlib.rc_context({"svg.fonttype": "path", "lines.linewidth": 9, "font.size": 30}):
        second = reported(table).all("svg")
    assert [drawn.text for drawn in first] == [drawn.text for drawn in second]


@pytest.mark.parametrize("library", ["jinja2", "matplotlib", "squarify"])
def test_report_names_missing_extra(
    library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = TABLE.make(tmp_path / "t")
    monkeypatch.setattr(
        "pyhudi.api.outputs.find_spec", lambda name: None if name == library else name
    )
    with pytest.raises(ConfigError, match=f"{library} is not installed") as error:
        table.report(tmp_path / "page.html")
    assert error.value.hint == "pip install 'pyhudi[report]'"
    assert "pyhudi" in table._repr_html_()


def instant(minute: int, action: str, *, done: bool = True) -> Instant:
    begun, ended = (
        format_instant(1_700_000_000_000 + 60_000 * minute + ms, "UTC") for ms in (0, 9)
    )
    state = State.COMPLETED if done else State.REQUESTED
    return Instant(begun, action, state, ended if done else None, "")


def file_slice(partition: str, number: int, size: int, log: int) -> FileSlice:
    file_id = f"{number:08}-0000-0000-0000-000000000000-0"
    time = "20240101000000000"
    base = BaseFile(partition, f"{file_id}_0-0-0_{time}.parquet", file_id, time, "0-0-0", size)
    logs = (LogFile(partition, "log", file_id, time, 1, "0-0-0", "", log),) if log else ()
    return FileSlice(partition, file_id, time, base, logs)
