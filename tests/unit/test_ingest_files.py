"""`pyhudi.ingest` of files: which files are read, what becomes of records, checkpoints."""

from __future__ import annotations

import bz2
import gzip
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyhudi
from pyhudi import FileSource, _native, ingest
from pyhudi.cli import main
from pyhudi.config.streamer_checkpoint import KEY_V1, KEY_V2, RESET_V2
from pyhudi.errors import (
    ColumnTypeWarning,
    ConfigError,
    CorruptTable,
    SchemaMismatch,
    UnsupportedTableFeature,
)
from pyhudi.ingestion.ingest import Operation

T0 = 1_700_000_000_000
"""Modification time of the first file, in milliseconds."""


@pytest.fixture
def landing(tmp_path: Path) -> Path:
    folder = tmp_path / "landing"
    folder.mkdir()
    return folder


def land(folder: Path, name: str, rows: list[dict[str, Any]] | str, ms: int = T0) -> Path:
    """Puts a file of JSON lines, or of this text, into the folder."""
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    text = rows if isinstance(rows, str) else "".join(f"{json.dumps(row)}\n" for row in rows)
    path.write_text(text)
    os.utime(path, ns=(ms * 1_000_000, ms * 1_000_000))
    return path


def rows_of(table: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pyhudi.open_table(table).to_arrow().sort_by("id").to_pylist()
    return rows


def metadata(table: Path) -> dict[str, str]:
    """The extra metadata of the newest commit."""
    return dict(pyhudi.open_table(table).history(1).to_pylist()[0]["metadata"])


def test_ingest_reads_new_files_once(landing: Path, tmp_path: Path) -> None:
    table = tmp_path / "t"
    land(landing, "a.json", [{"id": 1, "v": "a"}, {"id": 2, "v": "a"}])
    land(landing, "deep/b.json", [{"id": 3, "v": "b"}], T0 + 5)
    first = ingest(table, FileSource(landing), key="id")
    assert (first.commits, first.rows, first.checkpoint) == (1, 3, str(T0 + 5))
    assert ingest(table, FileSource(landing)).commits == 0
    land(landing, "c.json", [{"id": 2, "v": "c"}], T0 + 9)
    assert ingest(table, FileSource(landing)).rows == 1
    assert [row["v"] for row in rows_of(table)] == ["a", "c", "b"]
    assert metadata(table)[KEY_V2] == str(T0 + 9)


def test_ingest_ignores_hidden_empty_and_other_files(landing: Path, tmp_path: Path) -> None:
    for name in ("_SUCCESS", ".a.json", "_temporary/b.json", ".x/c.json", "d.txt"):
        land(landing, name, [{"id": 9}])
    land(landing, "empty.json", "")
    land(landing, "a.json", [{"id": 1}])
    ingest(tmp_path / "t", FileSource(landing, pattern="*.json"), key="id")
    assert rows_of(tmp_path / "t") == [{"id": 1}]
    with pytest.raises(ConfigError, match=r"extension of d\.txt"):
        ingest(tmp_path / "u", FileSource(landing), key="id")


def test_ingest_keeps_files_of_one_time_together(landing: Path, tmp_path: Path) -> None:
    """As `DFSPathSelector`: files of one time exceed the maximum size, later ones wait."""
    for n in range(4):
        land(landing, f"{n}.json", [{"id": n}], T0 + n // 3)
    done: list[int] = []
    source = FileSource(landing, max_bytes=1)
    result = ingest(
        tmp_path / "t",
        source,
        key="id",
        on_commit=lambda written: done.append(written.rows_in or 0),
    )
    assert (done, result.commits) == ([3, 1], 2)


def test_ingest_reads_file_that_appears_late(landing: Path, tmp_path: Path) -> None:
    """A file with the time of the checkpoint or an older one appears after the commit."""
    table, source = tmp_path / "t", FileSource(landing, late_seconds=1)
    land(landing, "a.json", [{"id": 1}], T0)
    ingest(table, source, key="id", operation="insert")
    land(landing, "same.json", [{"id": 2}], T0)
    land(landing, "older.json", [{"id": 3}], T0 - 900)
    land(landing, "too_old.json", [{"id": 4}], T0 - 1100)
    assert ingest(table, source, operation="insert").rows == 2
    assert ingest(table, FileSource(landing, late_seconds=9), operation="insert").rows == 0
    land(landing, "newer.json", [{"id": 5}], T0 + 5000)
    assert ingest(table, source, operation="insert").rows == 1
    assert [row["id"] for row in rows_of(table)] == [1, 2, 3, 5]


def test_ingest_continues_checkpoint_of_hudi(landing: Path, tmp_path: Path) -> None:
    """Hudi's commits name no files, so its own rule applies: later times only."""
    table = pyhudi.create_table(tmp_path / "t", pa.schema([("id", pa.int64())]), key="id")
    land(landing, "a.json", [{"id": 1}], T0)
    land(landing, "b.json", [{"id": 2}], T0 + 1)
    for name in (KEY_V1, KEY_V2):
        table.upsert([{"id": 0}], commit_metadata={name: str(T0)})
        table.upsert([{"id": 0}])
        assert ingest(table, FileSource(landing)).rows == 1
        assert [row["id"] for row in rows_of(tmp_path / "t")] == [0, 2]
        table.refresh().rollback(table.history(1).to_pylist()[0]["instant"])


@pytest.mark.parametrize(("version", "name"), [(6, KEY_V1), (8, KEY_V2), (9, KEY_V2)])
def test_ingest_stores_checkpoint_as_version_does(
    version: int, name: str, landing: Path, tmp_path: Path
) -> None:
    land(landing, "a.json", [{"id": 1}])
    ingest(tmp_path / "t", FileSource(landing), key="id", version=version)
    entries = metadata(tmp_path / "t")
    assert {KEY_V1, KEY_V2} & entries.keys() == {name}
    assert entries[name] == str(T0)


def test_ingest_replaces_checkpoint_once(landing: Path, tmp_path: Path) -> None:
    table, source = tmp_path / "t", FileSource(landing)
    land(landing, "a.json", [{"id": 1}], T0)
    ingest(table, source, key="id")
    land(landing, "b.json", [{"id": 2}], T0 + 1)
    assert ingest(table, source, checkpoint="0").rows == 2
    assert metadata(table)[RESET_V2] == "0"
    assert ingest(table, source, checkpoint="0").rows == 0
    assert ingest(table, source, checkpoint="1").rows == 2


def test_ingest_refuses_checkpoint_of_another_source(landing: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    land(landing, "a.json", [{"id": 1}])
    land(other, "b.json", [{"id": 2}], T0 - 1)
    ingest(tmp_path / "t", FileSource(landing), key="id")
    with pytest.raises(ConfigError, match="checkpoint of another source"):
        ingest(tmp_path / "t", FileSource(other))
    assert ingest(tmp_path / "t", FileSource(other), checkpoint="0").rows == 1
    table = pyhudi.open_table(tmp_path / "t")
    table.upsert([{"id": 5}], commit_metadata={KEY_V2: "topic,0:7"})
    with pytest.raises(ConfigError, match="not a modification time"):
        ingest(table, FileSource(landing))


def test_ingest_reads_all_formats(landing: Path, tmp_path: Path) -> None:
    land(landing, "a.csv", "id,v\n1,one\n2,\n")
    land(landing, "a.tsv", "id\tv\n3\tthree\n")
    (landing / "b.json.gz").write_bytes(gzip.compress(b'{"id":4,"v":"four"}\n'))
    (landing / "b.csv.bz2").write_bytes(bz2.compress(b"id,v\n5,five\n"))
    pq.write_table(pa.table({"id": [6], "v": ["six"]}), landing / "c.parquet")
    pq.write_table(pa.table({"id": [7], "extra": [0.5]}), landing / "d.parquet")
    schema = json.dumps(
        {
            "type": "record",
            "name": "r",
            "fields": [{"name": "id", "type": "long"}, {"name": "v", "type": ["null", "string"]}],
        }
    )
    rows = json.dumps([{"id": 8, "v": "eight"}, {"id": 9, "v": None}])
    (landing / "e.avro").write_bytes(_native.json_to_container(schema, rows, bytes(16)))
    ingest(tmp_path / "t", FileSource(landing), key="id")
    assert rows_of(tmp_path / "t") == [
        {"id": n, "v": v, "extra": 0.5 if n == 7 else None}
        for n, v in enumerate(
            ["one", None, "three", "four", "five", "six", None, "eight", None], start=1
        )
    ]


def test_avro_file_rows_reads_nested_columns_and_many_blocks() -> None:
    fields = [
        {"name": "id", "type": "long"},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
    ]
    schema = json.dumps({"type": "record", "name": "r", "fields": fields})
    rows = [{"id": n, "tags": ["x" * 50] * (n % 3)} for n in range(5000)]
    data = _native.json_to_container(schema, json.dumps(rows), bytes(16))
    assert _native.avro_file_rows(data).to_pylist() == rows
    with pytest.raises(CorruptTable):
        _native.avro_file_rows(data[:-20])
    with pytest.raises(UnsupportedTableFeature, match="snappy"):
        _native.avro_file_rows(b"Obj\x01\x02\x14avro.codec\x0csnappy\x00" + bytes(16))


def test_avro_rows_reads_records_after_header() -> None:
    schema = '{"type": "record", "name": "r", "fields": [{"name": "id", "type": "long"}]}'
    records = pa.array([b"\0\0\0\0\x01\x02", b"\0\0\0\0\x01\x04"], pa.large_binary())
    assert _native.avro_rows(schema, records, skip=5).to_pylist() == [{"id": 1}, {"id": 2}]
    with pytest.raises(CorruptTable):
        _native.avro_rows(schema, records, skip=4)


def test_ingest_adds_columns_and_widens_numbers(landing: Path, tmp_path: Path) -> None:
    table = tmp_path / "t"
    pq.write_table(pa.table({"id": [1], "n": pa.array([1], pa.int32())}), landing / "a.parquet")
    ingest(table, FileSource(landing), key="id")
    pq.write_table(pa.table({"id": [2], "n": [1 << 40], "new": ["x"]}), landing / "b.parquet")
    ingest(table, FileSource(landing))
    assert rows_of(table) == [
        {"id": 1, "n": 1, "new": None},
        {"id": 2, "n": 1 << 40, "new": "x"},
    ]


def test_ingest_selects_and_renames_columns(landing: Path, tmp_path: Path) -> None:
    table = tmp_path / "t"
    arguments: Any = {"columns": ["key", "v"], "rename": {"key": "id"}}
    for n in (1, 2):
        land(landing, f"{n}.json", [{"key": n, "v": "x", "secret": "s", "at": "01"}], T0 + n)
        ingest(table, FileSource(landing), key="id", **arguments)
    assert rows_of(table) == [{"id": 1, "v": "x"}, {"id": 2, "v": "x"}]
    land(landing, "3.json", [{"key": 3}], T0 + 3)
    with pytest.raises(ConfigError, match="no column 'v'"):
        ingest(table, FileSource(landing), **arguments)


BAD_JSON = '{"id": 1, "n": 5}\nnot json\n\n{"id": null, "n": 6}\n{"id": 2, "n": "x"}\n{"id": 3}\n'
BAD_CSV = 'id,n\n1,5\n1,2,3\n,6\n2,x\n3,"7"\n'


@pytest.mark.parametrize(("name", "text"), [("a.json", BAD_JSON), ("a.csv", BAD_CSV)])
def test_ingest_puts_bad_records_aside(name: str, text: str, landing: Path, tmp_path: Path) -> None:
    table, aside = tmp_path / "t", tmp_path / "aside"
    pyhudi.create_table(table, pa.schema([("id", pa.int64()), ("n", pa.int64())]), key="id")
    land(landing, name, text)
    with pytest.raises(SchemaMismatch, match="3 bad records, and max_bad_records is 2"):
        ingest(table, FileSource(landing), max_bad_records=2, bad_records=aside)
    assert rows_of(table) == []
    result = ingest(table, FileSource(landing), max_bad_records=3, bad_records=aside)
    assert (result.rows, result.bad_records) == (2, 3)
    assert [row["id"] for row in rows_of(table)] == [1, 3]
    (file,) = aside.iterdir()
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(lines) == 3
    assert all(line["reason"] and line["record"] for line in lines)
    assert all(str(landing) in line["source"] for line in lines)


def test_ingest_commits_checkpoint_of_file_without_rows(landing: Path, tmp_path: Path) -> None:
    pyhudi.create_table(tmp_path / "t", pa.schema([("id", pa.int64())]), key="id")
    land(landing, "a.json", "nothing\n")
    result = ingest(tmp_path / "t", FileSource(landing), max_bad_records=1)
    assert (result.commits, result.rows, result.bad_records) == (1, 0, 1)
    assert ingest(tmp_path / "t", FileSource(landing)).commits == 0
    with pytest.raises(ConfigError, match="have no columns"):
        ingest(tmp_path / "u", FileSource(landing), key="id", max_bad_records=1)


def test_ingest_refuses_empty_columns(landing: Path, tmp_path: Path) -> None:
    """A commit without rows would move the checkpoint past the file."""
    land(landing, "a.json", [{"id": 1}])
    with pytest.raises(ConfigError, match="columns is empty"):
        ingest(tmp_path / "t", FileSource(landing), key="id", columns=[])
    assert ingest(tmp_path / "t", FileSource(landing), key="id").rows == 1


def test_ingest_takes_csv_rows_that_are_not_utf8_for_bad(landing: Path, tmp_path: Path) -> None:
    (landing / "a.csv").write_bytes("id,v\n1,å\n".encode() + b"2,\xe5\n")
    with pytest.raises(SchemaMismatch, match="1 bad record"):
        ingest(tmp_path / "t", FileSource(landing), key="id")
    aside = tmp_path / "aside"
    result = ingest(
        tmp_path / "t", FileSource(landing), key="id", max_bad_records=1, bad_records=aside
    )
    assert result.bad_records == 1
    assert rows_of(tmp_path / "t") == [{"id": 1, "v": "å"}]
    (line,) = next(aside.iterdir()).read_text().splitlines()
    assert json.loads(line)["record"] == "{'id': '2', 'v': '\ufffd'}"


def test_ingest_refuses_csv_header_that_is_not_utf8(landing: Path, tmp_path: Path) -> None:
    (landing / "a.csv").write_bytes(b"id,n\xe4me\n4,x\n")
    with pytest.raises(ConfigError, match=r"a\.csv is not UTF-8 text"):
        ingest(tmp_path / "t", FileSource(landing), key="id", max_bad_records=9)


def test_ingest_names_the_bad_records_of_a_first_batch(landing: Path, tmp_path: Path) -> None:
    """No row is left, so the new table would have no columns."""
    land(landing, "a.csv", "id;v\n1;x\n")
    with pytest.raises(SchemaMismatch, match="the file has one column"):
        ingest(tmp_path / "t", FileSource(landing), key="id")
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("name", ["a.json.gz", "a.csv.zst", "a.parquet"])
def test_ingest_names_a_damaged_file(landing: Path, tmp_path: Path, name: str) -> None:
    land(landing, name, "no such format")
    with pytest.raises(CorruptTable, match=f"{name} (is not|cannot be)") as error:
        ingest(tmp_path / "t", FileSource(landing), key="id")
    assert error.value.file == str(landing / name)


def test_ingest_raises_for_files_with_different_columns(landing: Path, tmp_path: Path) -> None:
    land(landing, "a.json", [{"id": 1, "v": 1}])
    land(landing, "b.json", [{"id": 2, "v": {"x": 1}}])
    with pytest.raises(SchemaMismatch, match="columns that differ"):
        ingest(tmp_path / "t", FileSource(landing), key="id")


def test_ingest_of_missing_table_needs_key(landing: Path, tmp_path: Path) -> None:
    """A table without a key is created only if the caller asks for it, as by `create_table`."""
    table = tmp_path / "t"
    land(landing, "a.json", [{"id": 1}])
    for operation in get_args(Operation):
        with pytest.raises(ConfigError, match="key is missing") as error:
            ingest(table, FileSource(landing), operation=operation)
        assert "key=None" in error.value.hint
    with pytest.raises(ConfigError, match="upserts into a table without a key"):
        ingest(table, FileSource(landing), key=None)
    assert not table.exists()
    ingest(table, FileSource(landing), key=None, operation="insert")
    assert rows_of(table) == [{"id": 1}]
    assert not pyhudi.open_table(table).config.record_key_fields
    assert ingest(table, FileSource(landing), operation="insert").commits == 0
    assert ingest(table, FileSource(landing), key=None, operation="insert").commits == 0


def test_ingest_refuses_no_key_for_table_with_key(landing: Path, tmp_path: Path) -> None:
    pyhudi.create_table(tmp_path / "t", pa.schema([("id", pa.int64())]), key="id")
    with pytest.raises(ConfigError, match=r"key is None, and .* has id"):
        ingest(tmp_path / "t", FileSource(landing), key=None, operation="insert")


def test_ingest_command_needs_key_or_no_key(
    landing: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    land(landing, "a.json", [{"id": 1}])
    command = ["ingest", "files", str(tmp_path / "t"), str(landing), "--operation", "insert"]
    assert main(command) == 2
    assert "--key id" in (refused := capsys.readouterr().err)
    assert "--no-key" in refused
    assert main([*command, "--key", "id", "--no-key"]) == 2
    assert not (tmp_path / "t").exists()
    assert main([*command, "--no-key"]) == 0
    assert rows_of(tmp_path / "t") == [{"id": 1}]


def test_second_ingest_reads_again_from_moved_checkpoint(landing: Path, tmp_path: Path) -> None:
    """Another ingestion commits after the first one has read its files, before it commits."""
    table = tmp_path / "t"
    land(landing, "a.json", [{"id": 1}], T0)
    ingest(table, FileSource(landing), key="id", operation="insert")
    land(landing, "b.json", [{"id": 2}], T0 + 1)

    class Overtaken(FileSource):
        fetches = 0

        def fetch(self, position: Any, columns: Any) -> Any:
            batch = super().fetch(position, columns)
            Overtaken.fetches += 1
            if Overtaken.fetches == 1:
                assert ingest(table, FileSource(landing), operation="insert").rows == 1
            return batch

    result = ingest(table, Overtaken(landing), operation="insert")
    assert (result.commits, Overtaken.fetches) == (0, 2)
    assert [row["id"] for row in rows_of(table)] == [1, 2]


def test_ingests_at_the_same_time_write_each_record_once(landing: Path, tmp_path: Path) -> None:
    table = tmp_path / "t"
    pyhudi.create_table(table, pa.schema([("id", pa.int64())]), key="id")
    for n in range(8):
        land(landing, f"{n}.json", [{"id": n}], T0 + n)
    results: list[pyhudi.IngestResult] = []
    threads = [
        threading.Thread(
            target=lambda: results.append(
                ingest(table, FileSource(landing, max_bytes=1), operation="bulk_insert")
            )
        )
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [row["id"] for row in rows_of(table)] == [*range(8)]
    assert sum(result.rows for result in results) == 8


def test_ingest_with_interval_waits_until_stopped(landing: Path, tmp_path: Path) -> None:
    stop = threading.Event()
    land(landing, "0.json", [{"id": 0}], T0)

    def on_commit(written: pyhudi.WriteResult) -> None:
        count = pyhudi.open_table(tmp_path / "t").scan().count()
        if count == 3:
            stop.set()
        else:
            land(landing, f"{count}.json", [{"id": count}], T0 + count)

    result = ingest(
        tmp_path / "t", FileSource(landing), key="id", interval=0.01, on_commit=on_commit, stop=stop
    )
    assert (result.commits, result.rows) == (3, 3)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ingest_command_ends_after_commit(number: int, landing: Path, tmp_path: Path) -> None:
    land(landing, "a.json", [{"id": 1}])
    command = ["ingest", "files", str(tmp_path / "t"), str(landing), "--key", "id"]
    process = subprocess.Popen(
        [sys.executable, "-m", "pyhudi", *command, "--interval", "30"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    assert "1 row" in process.stderr.readline()
    process.send_signal(number)
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "1 row in 1 commit\n")


def test_ingest_command_without_interval_reports_interruption(
    landing: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A script must not take the ingestion for complete."""
    for at, name in enumerate(("a.json", "b.json")):
        land(landing, name, [{"id": at}], T0 + at)

    def interrupt(event: pyhudi.events.Event) -> None:
        if isinstance(event, pyhudi.events.Commit):
            signal.raise_signal(signal.SIGINT)

    command = ["ingest", "files", str(tmp_path / "t"), str(landing), "-k", "id", "--max-bytes", "1"]
    with pyhudi.events.listen(interrupt):
        assert main(command) == 130
    assert capsys.readouterr().out == "1 row in 1 commit\n"
    assert main(command) == 0
    assert len(rows_of(tmp_path / "t")) == 2


def test_ingest_command_prints_result(
    landing: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    land(landing, "a.csv", "k;v\n1;x\n")
    table = str(tmp_path / "t")
    options = ["--delimiter", ";", "--rename", "k=id", "-k", "id", "--json"]
    assert main(["ingest", "files", table, str(landing), *options]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["commits"], printed["rows"], printed["checkpoint"]) == (1, 1, str(T0))
    assert main(["ingest", "files", table, str(tmp_path / "nowhere")]) == 3
    assert "is not a directory" in capsys.readouterr().err


def test_ingest_checks_arguments(landing: Path, tmp_path: Path) -> None:
    arguments: Any
    wrong: Any
    for arguments in ({"operation": "merge"}, {"interval": 0}, {"max_bad_records": -1}):
        with pytest.raises(ConfigError):
            ingest(tmp_path / "t", FileSource(landing), key="id", **arguments)
    for wrong in ({"format": "xml"}, {"max_bytes": 0}, {"late_seconds": -1}):
        with pytest.raises(ConfigError):
            FileSource(landing, **wrong)


@pytest.mark.parametrize("columns", [{"key": "v"}, {"order_by": "v"}, {"partition_by": ["v"]}])
def test_ingest_refuses_other_columns_of_existing_table(
    landing: Path, tmp_path: Path, columns: dict[str, Any]
) -> None:
    land(landing, "a.json", [{"id": 1, "v": 1}])
    ingest(tmp_path / "t", FileSource(landing), key="id")
    assert ingest(tmp_path / "t", FileSource(landing), key=["id"]).rows == 0
    with pytest.raises(ConfigError, match=f"{next(iter(columns))} is"):
        ingest(tmp_path / "t", FileSource(landing), **columns)


def test_ingest_refuses_path_instead_of_source(landing: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not a source") as error:
        ingest(tmp_path / "t", str(landing), key="id")  # type: ignore[arg-type]
    assert "FileSource" in str(error.value.hint)


def test_file_source_names_wrong_size(landing: Path) -> None:
    with pytest.raises(ConfigError, match="max_bytes is 'lots'"):
        FileSource(landing, max_bytes="lots")


def test_ingest_names_the_file_of_a_record_without_key(landing: Path, tmp_path: Path) -> None:
    """Also of a Parquet file, which is read as a stream, and of a batch without rows."""
    land(landing, "a.json", [{"id": 1, "v": "a"}])
    land(landing, "b.json", [{"id": None, "v": "b"}])
    pq.write_table(pa.table({"id": [None, 4], "v": ["c", "d"]}), landing / "c.parquet")
    aside = tmp_path / "aside"
    result = ingest(
        tmp_path / "t", FileSource(landing), key="id", max_bad_records=2, bad_records=aside
    )
    assert (result.rows, result.bad_records) == (2, 2)
    (file,) = aside.iterdir()
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert sorted(line["source"] for line in lines) == [
        f"{landing}/b.json",
        f"{landing}/c.parquet",
    ]


def test_ingest_warns_of_columns_without_type(landing: Path, tmp_path: Path) -> None:
    """The first value of such a column adds it, so nothing is lost."""
    land(landing, "a.json", [{"id": 1, "v": None}])
    with pytest.warns(ColumnTypeWarning, match="all values of v are null"):
        ingest(tmp_path / "t", FileSource(landing), key="id")
    land(landing, "b.json", [{"id": 2, "v": 7}], T0 + 9)
    ingest(tmp_path / "t", FileSource(landing))
    assert rows_of(tmp_path / "t") == [{"id": 1, "v": None}, {"id": 2, "v": 7}]


def test_ingest_checks_key_of_a_passed_table(landing: Path, tmp_path: Path) -> None:
    table = pyhudi.create_table(tmp_path / "t", pa.schema([("id", pa.int64())]), key="id")
    with pytest.raises(ConfigError, match=r"key is 'v', and .* has id"):
        ingest(table, FileSource(landing), key="v")
