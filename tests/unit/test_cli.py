"""The command line: every command on real tables, beside what the API says."""

from __future__ import annotations

import datetime
import json
import os
import pty
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

import pyhudi
import pyhudi.cli
from pyhudi import HudiTable
from pyhudi.cli import PANELS, main
from pyhudi.clock import SystemClock
from tests.helpers.table_builder import SMALL, TableBuilder

AT = datetime.datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=datetime.timezone.utc)
TRIPS = TableBuilder(
    {
        "id": (pa.string(), lambda name: name),
        "city": (pa.string(), lambda name: ("rome", "oslo")[int(name[1:]) % 2]),
        "fare": (pa.float64(), lambda name: float(name[1:]) / 2),
        "ts": (pa.int64(), 1),
        "paid": (pa.decimal128(10, 2), Decimal("12.30")),
        "at": (pa.timestamp("us", "UTC"), AT),
        "day": (pa.date32(), datetime.date(2026, 1, 2)),
        "raw": (pa.binary(), b"\xff\x00"),
        "who": (
            pa.struct([("name", pa.string()), ("age", pa.int32())]),
            {"name": 'A "q"\n', "age": 4},
        ),
        "tags": (pa.list_(pa.string()), ["x", "y"]),
        "counts": (pa.map_(pa.string(), pa.int64()), [("n", 1)]),
    },
    partition_by="city",
    order_by="ts",
    kind="mor",
    options=SMALL,
)
PLAIN = TableBuilder(
    {
        "id": (pa.string(), lambda name: name),
        "city": (pa.string(), lambda name: ("rome", "oslo")[int(name[1:]) % 2]),
        "n": (pa.int64(), 1),
    },
    partition_by="city",
    kind="mor",
    options=SMALL,
    metadata=False,
)


@dataclass
class Done:
    """What came of one command."""

    code: int
    out: str
    err: str

    @property
    def value(self) -> Any:
        return json.loads(self.out)

    @property
    def rows(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


Run = Callable[..., Done]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def command(*arguments: object) -> Done:
        capsys.readouterr()
        code = main([str(each) for each in arguments])
        said = capsys.readouterr()
        return Done(code, said.out, said.err)

    return command


@pytest.fixture(scope="module")
def trips(tmp_path_factory: pytest.TempPathFactory) -> HudiTable:
    """A table that no test changes: two commits, log files, a metadata table."""
    table = TRIPS.make(tmp_path_factory.mktemp("cli") / "trips")
    table.insert(TRIPS.rows(["k1", "k2", "k3"]))
    changed = TRIPS.rows(["k2", "k5"], ts=2, fare=9.5)
    table.upsert(changed, commit_metadata={"job": "nightly"})
    return table


@pytest.fixture
def plain(tmp_path: Path) -> HudiTable:
    """A small table of one's own."""
    table = PLAIN.make(tmp_path / "plain")
    table.insert(PLAIN.rows(["k1", "k2", "k3"]))
    return table


def instants(table: HudiTable) -> list[str]:
    found: list[str] = table.refresh().inspect.timeline()["requested"].to_pylist()
    return found


def saved(path: Path, rows: pa.Table) -> Path:
    pyarrow.parquet.write_table(rows, path)
    return path


# ---------------------------------------------------------------- looking


@pytest.mark.parametrize("name", ["files", "slices", "partitions", "commits", "timeline"])
def test_inspect_prints_json_lines(name: str, trips: HudiTable, run: Run) -> None:
    done = run(name, trips.uri, "--json")
    assert (done.code, done.err) == (0, "")
    assert done.rows == getattr(trips.inspect, name)().to_pylist()
    assert done.rows


def test_maps_are_objects(trips: HudiTable, run: Run) -> None:
    told = run("logs", trips.uri, "--json").rows
    assert told == [
        {**row, "header": dict(row["header"])} for row in trips.inspect.logs().to_pylist()
    ]
    assert all("SCHEMA" in row["header"] for row in told)
    newest = run("history", trips.uri, "-n", 1, "--json").rows
    assert newest[0]["metadata"]["job"] == "nightly"
    assert newest[0]["instant"] == trips.history(1)["instant"][0].as_py()


def test_archived_instants_are_asked_for(trips: HudiTable, run: Run) -> None:
    for name in ("timeline", "history"):
        assert len(run(name, trips.uri, "--archived", "--json").rows) == 2
    assert run("history", trips.uri, "--since", "2099-01-01", "--json").rows == []


def test_show_says_what_the_table_is(trips: HudiTable, run: Run) -> None:
    told = run("show", trips.uri, "--json").value
    assert (told["name"], told["type"], told["version"]) == ("trips", "mor", 9)
    assert (told["key"], told["partitioned_by"], told["ordered_by"]) == (["id"], ["city"], ["ts"])
    assert told["metadata_partitions"] == list(trips.config.metadata_partitions)
    assert (told["commits"], told["last_commit"]) == (2, instants(trips)[-1])
    assert told["size"] == sum(trips.inspect.partitions()["size"].to_pylist())
    assert list(told["columns"]) == trips.schema.names
    shown = run("show", trips.uri)
    assert "EVENT_TIME_ORDERING" in shown.out
    assert "\x1b" not in shown.out
    properties = run("show", trips.uri, "--properties", "--json").value
    assert properties == dict(trips.config.properties)
    for line in run("show", trips.uri, "--properties").out.splitlines():
        name, value = line.split(maxsplit=1)
        assert properties[name] == value


@pytest.mark.parametrize("command", ["show", "head", "--help"])
def test_command_whose_reader_has_enough_succeeds(command: str, trips: HudiTable) -> None:
    """As in `pyhudi show trips | head -1`."""
    python = [sys.executable, "-m", "pyhudi.cli", command]
    arguments = [] if command == "--help" else [trips.uri]
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [*python, *arguments], check=False, stdout=write, stderr=subprocess.PIPE, text=True
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (0, "")


def test_schema(trips: HudiTable, run: Run) -> None:
    told = run("schema", trips.uri, "--json").rows
    assert [(row["column"], row["type"]) for row in told] == [
        (column.name, str(column.type)) for column in trips.schema
    ]
    assert {row["column"]: row["role"] for row in told if row["role"]} == {
        "id": ["key"],
        "city": ["partition"],
        "ts": ["ordering"],
    }


def test_metadata_table(trips: HudiTable, run: Run) -> None:
    assert run("metadata", trips.uri, "--json").rows == trips.inspect.metadata().to_pylist()
    stats = run("metadata", trips.uri, "column_stats", "--column", "fare", "--json").rows
    assert stats == trips.inspect.metadata("column_stats", "fare").to_pylist()
    assert stats
    indexes = [row["index"] for row in run("index", "list", trips.uri, "--json").rows]
    assert indexes == list(trips.config.metadata_partitions)


def test_health_is_a_finding_where_something_is_worth_doing(plain: HudiTable, run: Run) -> None:
    done = run("health", plain.uri, "--json")
    assert (done.code, done.value["advice"]) == (0, [])
    assert done.value["base_files"] == plain.inspect.health().base_files
    for number in range(8):
        plain.upsert(PLAIN.rows(["k1"], n=number))
    done = run("health", plain.uri)
    assert done.code == 1
    assert "compact:" in done.out


def test_report_is_a_page(trips: HudiTable, run: Run, tmp_path: Path) -> None:
    assert run("report", trips.uri, tmp_path / "page.html").code == 0
    assert "trips" in (tmp_path / "page.html").read_text()


# ---------------------------------------------------------------- reading


def test_rows_as_json_keep_their_types(trips: HudiTable, run: Run) -> None:
    told = {row["id"]: row for row in run("head", trips.uri, "--json").rows}
    assert sorted(told) == ["k1", "k2", "k3", "k5"]
    assert told["k2"] == {
        "id": "k2",
        "city": "rome",
        "fare": 9.5,
        "ts": 2,
        "paid": "12.30",
        "at": "2026-01-02T03:04:05.000678Z",
        "day": "2026-01-02",
        "raw": "/wA=",
        "who": {"name": 'A "q"\n', "age": 4},
        "tags": ["x", "y"],
        "counts": {"n": 1},
    }


def test_head_takes_columns_rows_and_a_moment(trips: HudiTable, run: Run) -> None:
    first = instants(trips)[0]
    some = run("head", trips.uri, "-c", "fare, id", "-w", "id = 'k2'", "--as-of", first, "--json")
    assert some.out == '{"fare":1,"id":"k2"}\n'
    assert len(run("head", trips.uri, "-n", 1, "--json").rows) == 1
    meta = run("head", trips.uri, "--meta-fields", "--json").rows
    assert next(iter(meta[0])) == "_hoodie_commit_time"
    old = run("head", trips.uri, "--read-optimized", "-w", "id = 'k2'", "--json").rows
    assert old[0]["ts"] == 1
    nothing = run("head", trips.uri, "-w", "fare > 99", "--json")
    assert (nothing.code, nothing.out) == (1, "")


def test_tables_for_people_align_and_name_columns(trips: HudiTable, run: Run) -> None:
    lines = run("head", trips.uri, "-c", "id,fare", "-w", "id = 'k2'").out.splitlines()
    assert [line.split() for line in (lines[0], lines[2])] == [["id", "fare"], ["k2", "9.5"]]
    assert set(lines[1]) == {"─"}


def test_data_move_no_terminal(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    data = pa.table({"id": ["a"], "c": ["x\x1b[31my\x9b"], "city": ["\x1b[2J"]})
    table = pyhudi.create_table(tmp_path / "t", data, key="id", partition_by="city")
    shown = run("query", table.uri, 'select c as "d\x1b" from t').out
    for columns in ("300", "40"):
        monkeypatch.setenv("COLUMNS", columns)
        shown += run("head", table.uri).out + run("files", table.uri).out
    told = run("head", table.uri, "-c", "\x1b[31m")
    assert told.code != 0
    assert not {"\x1b", "\x9b"} & set(shown + told.err)
    assert shown.count("x\\x1b[31my\\x9b") == 3
    assert "d\\x1b" in shown
    assert json.loads(run("head", table.uri, "--json").out)["city"] == "\x1b[2J"


def test_narrow_terminal_prints_one_value_a_line(
    trips: HudiTable, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "70")
    told = run("history", trips.uri, "-n", 1).out
    plain_text = re.sub(r"\x1b\[[0-9;]*m", "", told)
    assert plain_text != told
    lines = [line.split(maxsplit=1) for line in plain_text.splitlines()]
    assert ["instant", instants(trips)[-1]] in [[each.strip() for each in line] for line in lines]
    monkeypatch.setenv("COLUMNS", "300")
    assert "instant" in run("history", trips.uri, "-n", 1).out.splitlines()[0]
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("FORCE_COLOR")
    assert "\x1b" not in run("history", trips.uri, "-n", 1).out


def test_count(trips: HudiTable, run: Run) -> None:
    assert run("count", trips.uri).out == "4\n"
    assert run("count", trips.uri, "-w", "city = 'oslo'", "--json").value == 3
    assert run("count", trips.uri, "--as-of", instants(trips)[0]).out == "3\n"


def test_query_knows_the_table_by_two_names(trips: HudiTable, run: Run) -> None:
    sql = "SELECT a.city, count(*) AS n FROM t a JOIN trips b USING (id) GROUP BY 1 ORDER BY 1"
    assert run("query", trips.uri, sql, "--json").rows == [
        {"city": "oslo", "n": 3},
        {"city": "rome", "n": 1},
    ]
    wrong = run("query", trips.uri, "SELEC")
    assert (wrong.code, wrong.out) == (2, "")
    assert "syntax error" in wrong.err


def test_query_hint_says_which_column_to_quote(tmp_path: Path, run: Run) -> None:
    table = pyhudi.create_table(tmp_path / "t", pa.table({"id": ["a"], "at": [7]}), key="id")
    wrong = run("query", table.uri, "SELECT at FROM t")
    assert (wrong.code, 'Put "at" into double quotes' in wrong.err) == (2, True)
    assert run("query", table.uri, 'SELECT "at" FROM t', "--json").rows == [{"at": 7}]


def test_columns_of_the_users_are_no_sizes(tmp_path: Path, run: Run) -> None:
    rows = {"id": ["a"], "size": ["big"], "bytes": [5000], "base_size": [5000], "log_size": [5000]}
    table = pyhudi.create_table(tmp_path / "t", pa.table(rows), key="id")
    shown = ["a", "big", "5000", "5000", "5000"]
    assert run("head", table.uri).out.splitlines()[-1].split() == shown
    assert run("query", table.uri, "select * exclude (id) from t").out.split()[-4:] == shown[1:]
    assert re.search(r"\d KiB", run("files", table.uri).out)


def test_result_prints_repeated_column(trips: HudiTable, run: Run) -> None:
    done = run("query", trips.uri, "select id, id from t")
    assert (done.code, "rename one" in done.err) == (2, True)


def test_changes_and_diff_print_rows(trips: HudiTable, run: Run) -> None:
    first, last = instants(trips)
    completed = trips.inspect.commits()["completed"][0].as_py()
    since = run("incremental", trips.uri, "--start", completed, "-c", "id", "--json")
    assert sorted(row["id"] for row in since.rows) == ["k2", "k5"]
    assert since.code == 0
    none = run("incremental", trips.uri, "--start", "2099-01-01", "--json")
    assert (none.code, none.out) == (1, "")
    differ = run("diff", trips.uri, first, last, "--json")
    assert differ.code == 1
    by_op = {row["op"]: row for row in differ.rows}
    assert by_op["u"]["changed"] == ["fare", "ts"]
    assert (by_op["u"]["before"]["fare"], by_op["u"]["after"]["fare"]) == (1, 9.5)
    assert (by_op["i"]["before"], by_op["i"]["after"]["id"]) == (None, "k5")
    assert run("diff", trips.uri, last, last).code == 0


@pytest.mark.parametrize("command", ["import", "create"])
def test_new_table_needs_key_or_no_key(command: str, tmp_path: Path, run: Run) -> None:
    """The error is that of Python, with the command's options in its hint."""
    (tmp_path / "rows.csv").write_text("id,n\na,1\n")
    given = [tmp_path / "rows.csv"] if command == "import" else ["--schema", "id string"]
    refused = run(command, tmp_path / "t", *given)
    with pytest.raises(TypeError) as raised:
        pyhudi.create_table(tmp_path / "t", pa.schema([("id", pa.string())]))  # type: ignore[call-arg]
    message, _, hint = str(raised.value).partition("\nHint: ")
    assert refused.code == 2
    assert "missing a required argument: 'key'" in refused.err
    assert "missing a required argument: 'key'" in message
    said = hint.replace('key="id"', "--key id").replace("key=None", "--no-key")
    assert said in " ".join(refused.err.split())
    assert not (tmp_path / "t").exists()
    assert run(command, tmp_path / "t", *given, "--key", "id", "--no-key").code == 2
    without = run(command, tmp_path / "t", *given, "--no-key", "--quiet")
    assert (without.code, without.out, without.err) == (0, "", "")
    assert not pyhudi.open_table(tmp_path / "t").config.record_key_fields
    with_key = run(command, tmp_path / "u", *given, "--key", "id", "--quiet")
    assert (with_key.code, with_key.err) == (0, "")


def test_query_reads_meta_columns(trips: HudiTable, run: Run) -> None:
    sql = "SELECT DISTINCT _hoodie_commit_time AS t FROM t ORDER BY t"
    assert run("query", trips.uri, sql).code == 2
    times = [row["t"] for row in run("query", trips.uri, sql, "--meta-fields", "--json").rows]
    assert times == trips.inspect.commits()["requested"].to_pylist()
    assert "_hoodie_commit_time" not in run("query", trips.uri, "SELECT * FROM t", "--json").out


@pytest.mark.parametrize("end", ["csv", "parquet", "jsonl"])
def test_import_renames_and_drops_columns(end: str, tmp_path: Path, run: Run) -> None:
    """Values are read in the types of the table, by the new names."""
    rows = pa.table({"ID": ["007", "x"], "n": [1, 2], "junk": [1.5, None]})
    file = tmp_path / f"rows.{end}"
    if end == "parquet":
        saved(file, rows)
    elif end == "csv":
        file.write_text("ID,n,junk\n007,1,1.5\nx,2,\n")
    else:
        file.write_text("".join(json.dumps(row) + "\n" for row in rows.to_pylist()))
    base, changes = tmp_path / "t", ("--rename", "ID=id", "--drop", "junk")
    created = run("create", base, "--schema", "id string, n int", "-k", "id", "--quiet")
    assert created.code == 0, created.err
    assert run("import", base, file, *changes, "--quiet").code == 0
    assert run("import", tmp_path / "new", file, *changes, "-k", "id", "--quiet").code == 0
    for path in (base, tmp_path / "new"):
        table = pyhudi.open_table(path)
        assert table.schema.names == ["id", "n"]
        assert sorted(table.to_arrow().to_pylist(), key=lambda row: row["n"]) == [
            {"id": "007", "n": 1},
            {"id": "x", "n": 2},
        ]
    swapped = run(
        "import", tmp_path / "s", file, "--rename", "n=junk", "--rename", "junk=n", "-k", "n"
    )
    assert swapped.code == 3, "a null key"
    assert "null" in swapped.err
    for wrong in (["--drop", "Junk"], ["--rename", "Id=id"], ["--rename", "ID=n"]):
        assert run("import", base, file, *wrong).code == 2


def test_help_groups_commands(run: Run) -> None:
    out = run("--help").out
    headings = [out.index(f"─ {panel} ─") for panel in PANELS.values()]
    assert headings == sorted(headings)
    lines = out.splitlines()
    begin = next(at for at, line in enumerate(lines) if "─ Administration ─" in line)
    assert any(" create " in line for line in lines[begin:])
    assert not any(" upsert " in line for line in lines[begin:])


def test_incremental_from_position_reads_each_commit_once(tmp_path: Path, run: Run) -> None:
    options = {"hoodie.table.cdc.enabled": True}
    table, seen = PLAIN.make(tmp_path / "t", options={**SMALL, **options}), tmp_path / "seen"
    for verb in ("incremental", "changes"):
        seen.unlink(missing_ok=True)
        codes, found = [], []
        for name in ("k1", "k2", None, "k3"):
            if name is not None:
                table.upsert(PLAIN.rows([f"{name}-{verb}"], city="rome"))
            done = run(verb, table.uri, "--position", seen, "--json")
            codes.append(done.code)
            rows = (row.get("after", row)["id"] for row in done.rows)
            found += [name for name in rows if name.endswith(verb)]
        assert codes == [0, 0, 1, 0]
        assert found == [f"{name}-{verb}" for name in ("k1", "k2", "k3")]
    shown = run("incremental", table.uri, "--end", seen.read_text().strip())
    assert f"the next run begins with --start {seen.read_text()}" in shown.err
    for wrong in (("--start", "earliest"), ("--limit", 1)):
        refused = run("incremental", table.uri, "--position", seen, *wrong)
        assert (refused.code, "leave" in refused.err) == (2, True)


def test_position_stays_where_reading_fails(tmp_path: Path, run: Run) -> None:
    table, seen = PLAIN.make(tmp_path / "t"), tmp_path / "seen"
    seen.write_text("no time\n")
    assert run("incremental", table.uri, "--position", seen).code == 3
    assert seen.read_text() == "no time\n"
    assert run("incremental", table.uri, "--position", tmp_path / "new").code == 1
    # There is no commit yet: the next read begins at the beginning.
    assert (tmp_path / "new").read_text() == "\n"
    table.upsert(PLAIN.rows(["k1"]))
    assert run("incremental", table.uri, "--position", tmp_path / "new").code == 0


def test_changes(tmp_path: Path, run: Run) -> None:
    options = {"hoodie.table.cdc.enabled": True}
    table = PLAIN.make(tmp_path / "cdc", kind="cow", options={**SMALL, **options})
    table.upsert(PLAIN.rows(["k1"]))
    table.upsert(PLAIN.rows(["k1"], n=2))
    told = run("changes", table.uri, "--json").rows
    assert [(row["op"], row["after"]["n"]) for row in told] == [("i", 1), ("u", 2)]
    deletes = run("changes", table.uri, "-w", "op = 'd'", "--images", "json", "--json")
    assert (deletes.code, deletes.out) == (1, "")
    assert "hoodie.table.cdc.enabled" in run("changes", PLAIN.make(tmp_path / "not").uri).err


@pytest.mark.parametrize("end", ["parquet", "arrow", "csv", "jsonl"])
def test_exported_rows_import_again(end: str, trips: HudiTable, run: Run, tmp_path: Path) -> None:
    file = tmp_path / f"rows.{end}"
    # Text files have no bytes, and CSV nothing nested.
    nested = {"csv": [], "jsonl": ["who", "tags", "counts"]}.get(
        end, ["who", "tags", "counts", "raw"]
    )
    columns = ["id", "city", "fare", "ts", "paid", "at", "day", *nested]
    done = run("export", trips.uri, file, "-c", ",".join(columns), "-w", "ts = 2", "--json")
    assert done.value == {"file": str(file), "format": done.value["format"], "rows": 2}
    table = pyhudi.create_table(
        tmp_path / "copy", pa.schema([trips.schema.field(name) for name in columns]), key="id"
    )
    assert run("bulk-insert", table.uri, file, "--sort", "global", "--sort-by", "id").code == 0
    rows = table.refresh().scan().to_arrow().sort_by("id")
    wanted = trips.scan(columns, "ts = 2").to_arrow().sort_by("id")
    assert rows.cast(wanted.schema).equals(wanted)


def test_exports_are_whole_or_not_there(trips: HudiTable, run: Run, tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    everything = run("export", trips.uri, file)
    assert (everything.code, everything.out) == (0, f"4 rows to {file}\n")
    told = pyarrow.csv.read_csv(file).to_pylist()
    assert {row["who"] for row in told} == {'{"name":"A \\"q\\"\\n","age":4}'}
    assert {row["raw"] for row in told} == {"/wA="}
    again = run("export", trips.uri, file)
    assert (again.code, "--force" in again.err) == (2, True)
    assert run("export", trips.uri, file, "--force", "-n", 1).code == 0
    assert file.read_text().count("\n") == 2
    assert run("export", trips.uri, tmp_path / "rows.xyz").code == 2
    elsewhere = run("export", trips.uri, tmp_path / "none" / "rows.csv")
    assert (elsewhere.code, "no directory" in elsewhere.err) == (2, True)
    assert [path.name for path in tmp_path.iterdir()] == ["rows.csv"]


def test_export_to_standard_output(trips: HudiTable, capfdbinary: Any) -> None:
    assert main(["export", trips.uri, "-", "--format", "json", "-c", "id", "-w", "id = 'k1'"]) == 0
    assert capfdbinary.readouterr().out == b'{"id":"k1"}\n'


# ---------------------------------------------------------------- writing


def test_create_from_text(tmp_path: Path, run: Run) -> None:
    columns = (
        "id string not null, n long, i int, d decimal(10,2), s struct<a:int,b:array<double>>,"
        " at timestamp, day date, raw binary, m map<string,boolean>, f float"
    )
    done = run(
        "create", tmp_path / "t", "--schema", columns, "--key", "id,n", "--partition-by", "day",
        "--order-by", "n", "--type", "mor", "--table-version", 8,
        "-o", "hoodie.table.name=other", "-o", "hoodie.metadata.enable=false", "--json",
    )  # fmt: skip
    table = pyhudi.open_table(tmp_path / "t")
    assert done.value == {"name": "other", "location": table.uri, "type": "mor", "version": 8}
    assert (table.name, table.version, table.config.record_key_fields) == ("other", 8, ("id", "n"))
    assert table.schema.equals(
        pa.schema(
            [
                pa.field("id", pa.string(), nullable=False),
                ("n", pa.int64()),
                ("i", pa.int32()),
                ("d", pa.decimal128(10, 2)),
                ("s", pa.struct([("a", pa.int32()), ("b", pa.list_(pa.float64()))])),
                ("at", pa.timestamp("us", "UTC")),
                ("day", pa.date32()),
                ("raw", pa.binary()),
                ("m", pa.map_(pa.string(), pa.bool_())),
                ("f", pa.float32()),
            ]
        )
    )
    again = run("create", tmp_path / "t", "--schema", columns, "--key", "id")
    assert (again.code, "exists" in again.err) == (3, True)


@pytest.mark.parametrize(
    "text",
    [
        "id",
        "id nonsense",
        "",
        "id string) --",
        "id string, d decimal(50,2)",
        "id string, d decimal(0)",
        "id string, d decimal(5,6)",
        "id string, d decimal(a,b)",
        "id string, d decimal(10,2,3)",
        "id string, n int default 5",
        "id string primary key",
        "id string, n int generated always as (1)",
        "id string, s struct<a:int comment 'x'>",
    ],
)
def test_columns_that_are_none_are_wrong_use(text: str, tmp_path: Path, run: Run) -> None:
    done = run("create", tmp_path / "t", "--schema", text, "--key", "id")
    assert (done.code, "--schema" in done.err) == (2, True)
    assert not (tmp_path / "t").exists()


def test_create_where_there_is_a_table(tmp_path: Path, run: Run) -> None:
    base = tmp_path / "t"
    made = ("create", base, "--schema", "id string", "-k", "id", "--mode")
    assert run(*made, "ignore").code == 0
    pyhudi.open_table(base).insert(pa.table({"id": ["a"]}))
    assert run(*made, "error").code == 3
    assert "found table t" in run(*made, "ignore").out
    assert run(*made, "overwrite").code == 2  # Nobody can be asked.
    assert pyhudi.open_table(base).scan().count() == 1
    assert run(*made, "overwrite", "--yes").code == 0
    assert pyhudi.open_table(base).scan().count() == 0


def test_create_from_a_file_takes_its_columns_alone(tmp_path: Path, run: Run) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("id,n,at\nk1,1,2026-01-02\n")
    assert (
        run("create", tmp_path / "t", file, "-k", "id", "-o", "hoodie.metadata.enable=false").code
        == 0
    )
    table = pyhudi.open_table(tmp_path / "t")
    assert [str(kind) for kind in table.schema.types] == ["string", "int64", "date32[day]"]
    assert table.count() == 0
    assert run("create", tmp_path / "u", "-k", "id").code == 2
    assert run("create", tmp_path / "u", tmp_path / "none.csv", "-k", "id").code == 2


def test_import_makes_the_table_once(tmp_path: Path, run: Run) -> None:
    file = saved(tmp_path / "rows.parquet", PLAIN.rows(["k1", "k2"]))
    options = ("-o", "hoodie.metadata.enable=false", "--json")
    first = run("import", tmp_path / "t", file, "--key", "id", "--partition-by", "city", *options)
    assert first.value["rows_inserted"] == 2
    assert first.value["operation"] == "BULK_INSERT"
    more = saved(tmp_path / "more.parquet", PLAIN.rows(["k3"]))
    assert run("import", tmp_path / "t", more, *options).value["rows_inserted"] == 1
    table = pyhudi.open_table(tmp_path / "t")
    assert (table.count(), table.config.partition_fields) == (3, ("city",))
    refused = run("import", tmp_path / "t", more, "--key", "city", *options)
    assert refused.code == 2
    assert "has id" in refused.err
    assert pyhudi.open_table(tmp_path / "t").count() == 3


def test_failed_import_leaves_nothing(tmp_path: Path, run: Run) -> None:
    file = tmp_path / "late.csv"
    file.write_text("id,v\n" + "".join(f"{row},{row}\n" for row in range(200_000)) + "zz,1\n")
    assert run("import", tmp_path / "t", file, "--key", "id").code == 3
    assert not (tmp_path / "t").exists()
    (tmp_path / "late.csv").write_text("id,v\n1,1\n")
    assert run("import", tmp_path / "t", file, "--key", "id").code == 0
    file.write_text("id,v\nzz,1\n")
    assert run("import", tmp_path / "t", file, "--key", "id").code == 3
    assert pyhudi.open_table(tmp_path / "t").count() == 1


def test_upsert_and_insert_from_files(plain: HudiTable, tmp_path: Path, run: Run) -> None:
    lines = tmp_path / "rows.jsonl"
    lines.write_text('{"id":"k2","city":"rome","n":7}\n{"id":"k5","city":"oslo","n":7}\n')
    said = ("--commit-metadata", "job=a=b", "--commit-id", "one")
    done = run("upsert", plain.uri, lines, *said, "--json")
    assert (done.value["rows_updated"], done.value["rows_inserted"]) == (1, 1)
    assert ("job", "a=b") in plain.refresh().history(1)["metadata"][0].as_py()
    again = run("upsert", plain.uri, lines, *said, "--json")
    assert (again.value["was_written_before"], again.value["instant"]) == (
        True,
        done.value["instant"],
    )
    assert plain.refresh().count("n = 7") == 2
    feather = tmp_path / "rows.data"
    pyarrow.feather.write_feather(PLAIN.rows(["k6"]), feather, compression="uncompressed")
    assert run("insert", plain.uri, feather).code == 2
    shown = run("insert", plain.uri, feather, "--format", "arrow")
    assert ["rows", "inserted", "1"] in [line.split() for line in shown.out.splitlines()]
    assert run("insert", plain.uri, feather, "--format", "arrow", "--quiet").out == ""


def test_schema_modes_and_partial_rows(plain: HudiTable, tmp_path: Path, run: Run) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("id,city,n,extra\nk9,rome,1,x\n")
    refused = run("upsert", plain.uri, file)
    assert (refused.code, "hint:" in refused.err, "Traceback" in refused.err) == (3, True, False)
    assert run("upsert", plain.uri, file, "--schema-mode", "merge").code == 0
    assert plain.refresh().schema.names == ["id", "city", "n", "extra"]
    file.write_text("id,city\nk9,rome\n")
    assert run("upsert", plain.uri, file, "--partial").code == 0
    assert plain.refresh().scan(where="id = 'k9'").to_arrow()["extra"].to_pylist() == ["x"]


def test_text_files_lose_nothing(tmp_path: Path, run: Run) -> None:
    columns = [
        ("id", pa.string()),
        ("text", pa.string()),
        ("day", pa.date32()),
        ("raw", pa.binary()),
    ]
    table = pyhudi.create_table(
        tmp_path / "t", pa.schema(columns), key="id", options={"hoodie.metadata.enable": False}
    )
    lines = tmp_path / "rows.jsonl"
    # The column comes first in a line far behind, beyond what a reader looks at once.
    early = "".join(f'{{"id":"k{number}","day":null}}\n' for number in range(60_000))
    lines.write_text(early + '{"id":"last","text":"NA","day":"2026-01-02"}\n')
    assert run("insert", table.uri, lines, "--schema-mode", "merge").code == 0
    (last,) = table.refresh().scan(where="id = 'last'").to_arrow().to_pylist()
    assert last == {"id": "last", "text": "NA", "day": datetime.date(2026, 1, 2), "raw": None}
    rows = tmp_path / "rows.csv"
    rows.write_text('id,text,day\na,,\nb,"",\nc,NA,2026-01-02\n')
    assert run("insert", table.uri, rows, "--schema-mode", "merge").code == 0
    found = table.refresh().scan(["id", "text"], "id IN ('a', 'b', 'c')").to_arrow().to_pylist()
    assert {row["id"]: row["text"] for row in found} == {"a": None, "b": "", "c": "NA"}
    rows.write_text("id,raw\na,/wA=\n")
    refused = run("insert", table.uri, rows, "--schema-mode", "merge")
    assert (refused.code, "'raw' is binary" in refused.err) == (3, True)


@pytest.mark.parametrize("text", ["", "\n", " \n\n"])
def test_json_files_without_rows_write_none(
    text: str, plain: HudiTable, tmp_path: Path, run: Run
) -> None:
    file = tmp_path / "none.jsonl"
    file.write_text(text)
    before = run("count", plain.uri).out
    assert run("upsert", plain.uri, file).code == 0
    assert run("count", plain.uri).out == before
    told = run("import", tmp_path / "new", file, "--key", "id")
    assert told.code == 3
    assert "no rows" in told.err
    assert not (tmp_path / "new").exists()


def test_import_refuses_pipe(plain: HudiTable, run: Run) -> None:
    told = run("upsert", plain.uri, "/dev/null", "--format", "csv")
    assert told.code == 3
    assert "not a regular file" in told.err


def test_damaged_files_are_wrong_use(plain: HudiTable, tmp_path: Path, run: Run) -> None:
    before = instants(plain)
    file = tmp_path / "rows.parquet"
    file.write_bytes(b"no Parquet at all")
    done = run("upsert", plain.uri, file)
    assert (done.code, "Traceback" in done.err) == (2, False)
    assert instants(plain) == before


def test_update(plain: HudiTable, run: Run) -> None:
    done = run("update", plain.uri, "-w", "n = 1", "--set", "n=n + 10", "--json")
    assert done.value["rows_updated"] == 3
    assert plain.refresh().count("n = 11") == 3
    assert run("update", plain.uri, "-w", "n = 1", "--set", "n").code == 2
    assert run("update", plain.uri, "--set", "n=1").code == 2


def test_repeated_option_is_usage_error(plain: HudiTable, run: Run) -> None:
    done = run("update", plain.uri, "-w", "n = 1", "--set", "n=5", "--set", "n =6")
    assert (done.code, "'n' twice" in done.err) == (2, True)
    assert plain.refresh().count("n = 1") == 3


def test_delete_by_keys_or_filter(plain: HudiTable, tmp_path: Path, run: Run) -> None:
    keys = tmp_path / "keys.csv"
    keys.write_text("id\nk1\n")
    assert run("delete", plain.uri, keys, "--json").value["rows_deleted"] == 1
    assert run("delete", plain.uri).code == 2
    assert run("delete", plain.uri, keys, "-w", "n = 1").code == 2
    unasked = run("delete", plain.uri, "-w", "n = 1")
    assert (unasked.code, "--yes" in unasked.err) == (2, True)
    assert plain.refresh().count() == 2
    assert run("delete", plain.uri, "-w", "id = 'k2'", "--yes").code == 0
    assert [row["id"] for row in plain.refresh().scan().to_arrow().to_pylist()] == ["k3"]


# ---------------------------------------------------------------- services


def test_compact_in_two_halves(plain: HudiTable, run: Run) -> None:
    plain.upsert(PLAIN.rows(["k1", "k2"], n=2))
    before = instants(plain)
    dry = run("compact", plain.uri, "--dry-run", "--json").value
    assert (dry["dry_run"], dry["file_groups"], instants(plain)) == (True, 2, before)
    planned = run("compact", plain.uri, "--no-execute", "--partition", "rome", "--json").value
    done = run("compact", plain.uri, "--no-schedule", "--json").value
    assert done["instants"] == planned["scheduled"]
    assert sum(plain.refresh().inspect.partitions()["log_files"].to_pylist()) == 1


def test_log_compact_and_maintain(plain: HudiTable, run: Run) -> None:
    for number in range(3):
        plain.upsert(PLAIN.rows(["k1"], n=number))
    done = run("log-compact", plain.uri, "--min-log-files", 2, "--json").value
    assert (done["service"], done["file_groups"]) == ("log_compact", 1)
    for number in range(8):
        plain.upsert(PLAIN.rows(["k1"], n=number))
    before = instants(plain)
    dry = run("maintain", plain.uri, "--dry-run", "--json").value
    assert (dry["dry_run"], dry["done"], instants(plain)) == (True, [], before)
    assert any(left.startswith("compact") for left in dry["left"])
    text = run("maintain", plain.uri, "--budget", "60")
    assert (text.code, "compact:" in text.out) == (0, True)
    assert plain.refresh().inspect.health().log_files == 0
    assert run("maintain", plain.uri, "--budget", "a lot").code == 3


def test_cluster_clean_and_archive(tmp_path: Path, run: Run) -> None:
    table = PLAIN.make(tmp_path / "t", kind="cow", partition_by=None)
    for number in range(1, 5):
        table.bulk_insert(PLAIN.rows([f"k{number}"]))
    dry = run("cluster", table.uri, "--dry-run", "--json").value
    assert (dry["file_groups"], len(instants(table))) == (4, 4)
    done = run("cluster", table.uri, "--sort-by", "n,id", "--layout", "zorder", "--json").value
    assert (done["files_read"], done["files_written"]) == (4, 1)
    clean = ("clean", table.uri, "--policy", "KEEP_LATEST_FILE_VERSIONS", "--retain", 1, "--json")
    assert run(*clean, "--dry-run").value["files_removed"] == 4
    assert table.refresh().inspect.files().num_rows == 5
    assert run(*clean).value["files_removed"] == 4
    assert table.refresh().inspect.files().num_rows == 1
    active = instants(table)
    archive = ("archive", table.uri, "--min-commits", 2, "--max-commits", 3, "--json")
    assert run(*archive, "--dry-run").code == 0
    assert instants(table) == active
    gone = run(*archive).value["instants"]
    assert instants(table) == [instant for instant in active if instant not in gone]


def test_expire(plain: HudiTable, run: Run) -> None:
    dry = run("expire", plain.uri, "--days", 30, "--dry-run", "--by-creation", "--json").value
    assert (dry["service"], dry["instants"]) == (dry["service"], [])
    assert run("expire", plain.uri).code == 3


def test_ctrl_c_ends_with_130(plain: HudiTable, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_clock: SystemClock, _seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(SystemClock, "sleep", interrupted)
    done = run("maintain", plain.uri, "--every", "1h")
    assert (done.code, done.err) == (130, "error: interrupted\n")


# ---------------------------------------------------------------- the past


def test_consumer_commands_list_move_and_delete(plain: HudiTable, run: Run) -> None:
    (batch,) = plain.stream(consumer="billing", wait=False)
    batch.commit()
    (listed,) = run("consumer", "list", plain.uri, "--json").rows
    assert (listed["consumer"], listed["position"]) == ("billing", batch.position)
    assert run("consumer", "reset", plain.uri, "billing", "earliest").code == 0
    assert plain.consumers()["position"].to_pylist() == [None]
    assert run("consumer", "reset", plain.uri, "other", "earliest").code == 3
    assert run("consumer", "delete", plain.uri, "billing", "--json").value["consumer"] == "billing"
    assert run("consumer", "delete", plain.uri, "billing").code == 3
    assert plain.consumers().num_rows == 0


def test_savepoints_and_going_back(plain: HudiTable, run: Run) -> None:
    kept = run("savepoint", "create", plain.uri, "--comment", "as it was", "--json").value[
        "instant"
    ]
    (listed,) = run("savepoint", "list", plain.uri, "--json").rows
    assert (listed["instant"], listed["comment"]) == (kept, "as it was")
    plain.upsert(PLAIN.rows(["k1"], n=2))
    plain.upsert(PLAIN.rows(["k1"], n=3))
    before = instants(plain)
    last = plain.inspect.commits()["requested"].to_pylist()[-1]
    assert run("rollback", plain.uri, last, "--dry-run", "--json").value["instants"] == [last]
    assert (run("rollback", plain.uri, last).code, instants(plain)) == (2, before)
    assert run("rollback", plain.uri, last, "--yes").code == 0
    assert plain.refresh().count("n = 2") == 1
    dry = run("restore", plain.uri, kept, "--dry-run", "--json").value
    assert (dry["restored_to"], plain.refresh().count("n = 2")) == (kept, 1)
    assert run("restore", plain.uri, kept).code == 2
    assert run("restore", plain.uri, kept, "--yes", "--json").value["restored_to"] == kept
    assert plain.refresh().count("n = 1") == 3
    assert run("savepoint", "delete", plain.uri, kept).code == 0
    assert plain.refresh().savepoints().num_rows == 0
    assert run("savepoint", "delete", plain.uri, kept).code == 3


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """A terminal as standard input; gives what types a line there."""
    master, slave = pty.openpty()
    with os.fdopen(slave, encoding="utf-8") as keyboard:
        monkeypatch.setattr("sys.stdin", keyboard)

        def typed(line: str) -> None:
            os.write(master, f"{line}\n".encode())

        yield typed
    os.close(master)


def test_terminal_asks_for_confirmation(
    plain: HudiTable, run: Run, terminal: Callable[[str], None]
) -> None:
    last = instants(plain)[-1]
    terminal("n")
    done = run("rollback", plain.uri, last)
    assert (done.code, instants(plain)) == (1, [last])
    assert f"Roll back {last}, losing 1 instant, 2 files of " in done.err
    terminal("y")
    assert run("rollback", plain.uri, last).code == 0
    assert plain.refresh().count() == 0


# ---------------------------------------------------------------- the whole table


def test_check_finds_and_repairs(plain: HudiTable, run: Run) -> None:
    assert (run("check", plain.uri, "--deep").code, run("check", plain.uri, "-q").out) == (0, "")
    begun = str(int(instants(plain)[0]) + 1)
    (base,) = (Path(plain.uri) / "rome").glob("*.parquet")
    left = base.with_name(f"11111111-2222-3333-4444-555555555555-0_1-2-3_{begun}.parquet")
    shutil.copy(base, left)
    done = run("check", plain.uri, "--json")
    assert done.code == 1
    assert [finding["item"] for finding in done.value["findings"]] == [left.name]
    repaired = run("check", plain.uri, "--repair", "--json")
    assert (repaired.code, repaired.value["repaired"]) == (0, done.value["findings"])
    assert not left.exists()


def test_versions(tmp_path: Path, run: Run) -> None:
    table = PLAIN.make(tmp_path / "t", version=8)
    dry = run("upgrade", table.uri, "--dry-run", "--json").value
    assert (dry["before"], dry["after"]) == (8, 9)
    assert pyhudi.open_table(table.uri).version == 8
    assert run("upgrade", table.uri).code == 0
    assert pyhudi.open_table(table.uri).version == 9
    assert run("downgrade", table.uri, "--to", 8).code == 2
    assert run("downgrade", table.uri, "--to", 8, "--dry-run").code == 0
    assert pyhudi.open_table(table.uri).version == 9
    assert run("downgrade", table.uri, "--to", 8, "--yes").code == 0
    assert pyhudi.open_table(table.uri).version == 8


def test_indexes(plain: HudiTable, run: Run) -> None:
    assert run("index", "list", plain.uri).code == 1
    created = run("index", "create", plain.uri, "column_stats", "-c", "id,n", "--json").value[
        "created"
    ]
    assert "column_stats" in created
    assert run("index", "create", plain.uri, "column_stats").code == 3
    assert run("rebuild-metadata", plain.uri, "--json").value["created"] == list(
        plain.refresh().config.metadata_partitions
    )
    assert run("index", "drop", plain.uri, "column_stats").code == 2
    gone = run("index", "drop", plain.uri, "column_stats", "--yes", "--json").value["dropped"]
    assert "column_stats" in gone
    assert "column_stats" not in plain.refresh().config.metadata_partitions


# ---------------------------------------------------------------- the frame


def test_errors_have_a_hint_and_no_traceback(tmp_path: Path, run: Run) -> None:
    done = run("show", tmp_path / "none")
    assert (done.code, done.out) == (3, "")
    first, second = done.err.splitlines()
    assert first.startswith("error: no Hudi table at ")
    assert second.startswith("hint: ")
    with pytest.raises(pyhudi.TableNotFound):
        run("show", tmp_path / "none", "--traceback")


def test_options_are_those_of_the_api(trips: HudiTable, run: Run) -> None:
    assert run("count", trips.uri, "-o", "hoodie.metadata.enable=false").out == "4\n"
    assert run("count", trips.uri, "-o", "hoodie.no.such=1").code == 3
    assert run("count", trips.uri, "-o", "nonsense").code == 2
    assert run("count", trips.uri, "--storage-option", "nonsense").code == 2
    assert run("count", trips.uri, "--storage-option", "no_such=1").code == 3


def test_warnings_are_words(plain: HudiTable, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    import warnings

    def warning(_table: HudiTable, _where: object = None) -> int:
        warnings.warn("something is odd", pyhudi.MetadataTableWarning, stacklevel=2)
        return 3

    monkeypatch.setattr(HudiTable, "count", warning)
    done = run("count", plain.uri)
    assert (done.code, done.out, done.err) == (0, "3\n", "warning: something is odd\n")


def test_wrong_use(run: Run) -> None:
    assert run("no-such-command").code == 2
    assert run("show").code == 2
    assert "Usage: pyhudi" in run("--help").out


@pytest.mark.parametrize("module", ["pyhudi", "pyhudi.cli"])
def test_version_and_module(module: str) -> None:
    called = [sys.executable, "-m", module, "--version"]
    said = subprocess.run(called, capture_output=True, text=True, check=True)
    assert said.stdout == f"pyhudi {pyhudi.__version__}\n"


def test_cli_runs_without_pandas(trips: HudiTable) -> None:
    code = (
        "import sys; from pyhudi.cli import program; program()\nsys.exit('pandas' in sys.modules)"
    )
    for command in (["head", trips.uri], ["query", trips.uri, "SELECT count(*) AS n FROM t"]):
        called = [sys.executable, "-c", code, *command]
        said = subprocess.run(called, capture_output=True, text=True, check=True)
        assert said.stdout


def test_without_the_extra(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "import sys, pyhudi.cli; sys.exit('typer' in sys.modules or 'rich' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
    monkeypatch.setattr(pyhudi.cli, "_NEEDED", ("typer", "no_such_library"))
    assert main(["show", "t"]) == 2
    assert "pip install 'pyhudi[cli]'" in capsys.readouterr().err


def test_create_takes_merge_rules(tmp_path: Path, run: Run) -> None:
    base, columns = tmp_path / "t", "id string, n long, tags array<string>"
    rules = ("--merge-rule", "n=sum", "--merge-rule", "tags=union")
    assert run("create", base, "--schema", columns, "--key", "id", *rules).code == 0
    assert "n=sum" in run("show", base).out
    table = pyhudi.open_table(base)
    for n in (1, 2):
        table.upsert([{"id": "a", "n": n, "tags": ["x"]}])
    assert table.to_arrow().to_pylist() == [{"id": "a", "n": 3, "tags": ["x"]}]
    for wrong in ("n", "n=product", "id=max"):
        failed = run(
            "create", tmp_path / "u", "--schema", columns, "-k", "id", "--merge-rule", wrong
        )
        assert failed.code != 0


def test_create_takes_constraints(tmp_path: Path, run: Run) -> None:
    columns, where = "id string, low long", tmp_path / "t"
    create = ("create", where, "--schema", columns, "-k", "id", "--constraint", "low=low >= 0")
    assert run(*create).code == 0
    assert pyhudi.open_table(where).constraints == {"low": "low >= 0"}
    assert "low >= 0" in run("show", where).out
    wrong = run("create", tmp_path / "u", "--schema", columns, "-k", "id", "--constraint", "low")
    assert wrong.code != 0
    assert "give 'positive=fare >= 0'" in " ".join(wrong.err.split())
