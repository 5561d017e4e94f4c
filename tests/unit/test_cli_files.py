"""Text files of the command line: what is read is what they say, in the types that are wanted."""

from __future__ import annotations

import datetime
import gzip
import json
import re
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import typer

import pyhudi
from pyhudi.cli import main
from pyhudi.cli.arguments import Format
from pyhudi.cli.files import FileRows, open_for_writing, rows_of
from pyhudi.cli.json_writer import json_lines
from pyhudi.errors import ConfigError, HudiError, SchemaMismatch
from pyhudi.input import json_reader

BEYOND = 2**53 + 1
"""The first whole number that a double lacks."""
MAPPED = pa.struct([("day", pa.date32()), ("n", pa.decimal128(10, 2)), ("f", pa.float32())])

Read = Callable[..., list[Any]]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """The rows of a text, read with the columns that are given as a table's."""

    def rows(form: Format, text: str | bytes, **wanted: pa.DataType) -> list[Any]:
        path = tmp_path / "rows"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        columns = pa.schema(list(wanted.items())) if wanted else None
        found: list[Any] = FileRows(path, form, columns).to_reader().read_all().to_pylist()
        return found

    return rows


@pytest.mark.parametrize("pad", range(4))
def test_line_breaks_in_quoted_text(pad: int, read: Read) -> None:
    """Beyond a block of the reader, which must not end within a text."""
    rows = 30_000
    lines = "".join(f'"k{row}","one{"x" * (row % 7)}\ntwo,three"\n' for row in range(rows))
    found = read(Format.csv, f"id,v\n{'p' * pad},x\n{lines}", id=pa.string(), v=pa.string())
    assert len(found) == rows + 1
    assert {row["v"].partition("\n")[2] for row in found[1:]} == {"two,three"}


def test_packed_text_is_read(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv.gz"
    path.write_bytes(gzip.compress(b"id,v\n1,2\n"))
    assert FileRows(path, Format.csv).to_reader().read_all().to_pylist() == [{"id": 1, "v": 2}]


def test_csv_empty_line_of_one_column_is_null(read: Read, tmp_path: Path) -> None:
    given = pa.record_batch({"v": ["a", None, "", "b"]})
    path = tmp_path / "one.csv"
    with open_for_writing(path, Format.csv, given.schema) as write:
        write(given)
    assert read(Format.csv, path.read_bytes(), v=pa.string()) == given.to_pylist()
    assert read(Format.csv, "a,b\n\n1,2\n\n") == [{"a": 1, "b": 2}]


@pytest.mark.parametrize(
    ("name", "given", "text"),
    [
        ("rows.csv", ";", "id;v\nk1;1,5\n"),
        ("rows.csv", "\\t", "id\tv\nk1\t1,5\n"),
        ("rows.tsv", None, "id\tv\nk1\t1,5\n"),
        ("rows.tsv", "|", "id|v\nk1|1,5\n"),
    ],
)
def test_csv_delimiter_comes_from_option_or_extension(
    name: str, given: str | None, text: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(text)
    rows = rows_of(path, None, given)
    assert rows.to_reader().read_all().to_pylist() == [{"id": "k1", "v": "1,5"}]


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("rows.csv", "", "one ASCII character"),
        ("rows.csv", "::", "one ASCII character"),
        ("rows.csv", '"', "one ASCII character"),
        ("rows.csv", "\u00a7", "one ASCII character"),
        ("rows.parquet", ";", "not a CSV file"),
    ],
)
def test_csv_refuses_bad_delimiter(name: str, given: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(typer.BadParameter, match=message):
        rows_of(tmp_path / name, None, given)


# ---------------------------------------------------------------- numbers


@pytest.mark.parametrize(
    ("form", "text", "kind"),
    [
        (Format.json, f'{{"n":{BEYOND}}}\n', pa.float64()),
        (Format.json, f'{{"n":{BEYOND}}}\n{{"n":0.5}}\n', None),
        (Format.json, f'{{"n":{2**64 + 1}}}\n{{"n":{2**64}}}\n', None),
        (Format.json, f'{{"n":{"9" * 90}}}\n', None),
        (Format.json, f'{{"n":{2**24 + 1}}}\n', pa.float32()),
        (Format.json, f'{{"n":[{{"x":"a","y":[0.5,{-BEYOND}]}},null]}}\n{{"n":null}}\n', None),
        (Format.csv, f"n\n{BEYOND}\n", pa.float64()),
        (Format.csv, f"n\n{BEYOND}\n0.5\n", None),
        (Format.csv, f"n\n{2**64 + 1}\n{2**64}\n", None),
        (Format.csv, f"n\n{2**24 + 1}\n", pa.float32()),
    ],
)
def test_whole_numbers_are_not_rounded(
    form: Format, text: str, kind: pa.DataType | None, read: Read
) -> None:
    with pytest.raises(SchemaMismatch, match=r"column 'n.*would be rounded"):
        read(form, text, **({} if kind is None else {"n": kind}))


def test_numbers_that_floats_hold(read: Read) -> None:
    texts = [str(2**60), f"{BEYOND}.0", "1e20", "-9007199254740993e1", "0.1"]
    numbers = [float(text) for text in texts]
    beside = f'"a \\" : {BEYOND}, \\"NaN\\" -5"'
    lines = "".join(f'{{"n":{text},"t":{beside},"s":[{{"b":true}}]}}\n' for text in texts)
    found = read(Format.json, lines + '{"n":-Infinity}\n{"n":NaN,"t":null}\n')
    assert [row["n"] for row in found[:-1]] == [*numbers, float("-inf")]
    found = read(Format.csv, "n,t\n" + "".join(f" {text},x\n" for text in [*texts, "-inf"]))
    assert [row["n"] for row in found] == [*numbers, float("-inf")]


def test_numbers_that_json_lacks_are_read_as_they_are_exported(read: Read) -> None:
    lines = """{"t":"NaN","x":"NaN","l":["NaN", "NaN",1],"s":{"y":"-Infinity"},"m":{"NaN":"NaN"}}
{"t":"a:\\"NaN\\",","x":1.5,"l":["Infinity"],"s":{"y":2},"m":{}}
{"t":"b","x":"-Infinity","l":null,"s":null,"m":null}
"""
    floats = pa.float64()
    found = read(
        Format.json,
        lines,
        t=pa.string(),
        x=floats,
        l=pa.list_(floats),
        s=pa.struct([("y", floats)]),
        m=pa.map_(pa.string(), floats),
    )
    nan, infinity = float("nan"), float("inf")
    assert str(found) == str(
        [
            {
                "t": "NaN",
                "x": nan,
                "l": [nan, nan, 1.0],
                "s": {"y": -infinity},
                "m": [("NaN", nan)],
            },
            {"t": 'a:"NaN",', "x": 1.5, "l": [infinity], "s": {"y": 2.0}, "m": []},
            {"t": "b", "x": -infinity, "l": None, "s": None, "m": None},
        ]
    )
    # Without a table, numbers among them tell what they are.
    assert str(read(Format.json, '{"x":1}\n{"x":"NaN"}\n')) == str([{"x": 1.0}, {"x": nan}])
    assert read(Format.json, '{"x":"NaN"}\n') == [{"x": "NaN"}]
    for text in ('{"x":"nan"}\n', '{"x":"Infinity "}\n'):
        with pytest.raises(pa.ArrowInvalid):
            read(Format.json, text, x=floats)


def test_numbers_padded_with_zeros_are_text_in_a_file_that_makes_the_table(read: Read) -> None:
    found = read(Format.csv, "zip,n,x,y\n00123,1,-0.5,1\n9,0,1e5,\n")
    assert found == [
        {"zip": "00123", "n": 1, "x": -0.5, "y": 1},
        {"zip": "9", "n": 0, "x": 1e5, "y": None},
    ]
    later = "".join(f"{row},{row}\n" for row in range(200_000))
    found = read(Format.csv, f"n,zip\n{later}1,007\n2,1e5\n")
    assert [row["zip"] for row in found[-3:]] == ["199999", "007", "1e5"]
    assert read(Format.csv, "zip\n00123\n", zip=pa.int64()) == [{"zip": 123}]


def test_decimals_hold_whole_numbers_of_any_size(read: Read) -> None:
    wide = pa.decimal128(20, 0)
    wanted = [{"n": Decimal(2**64 + 1)}]
    assert read(Format.json, f'{{"n":{2**64 + 1}}}\n', n=wide) == wanted
    assert read(Format.csv, f"n\n{2**64 + 1}\n", n=wide) == wanted
    assert read(Format.csv, f"n\n{2**64 + 1}\n", n=pa.string()) == [{"n": str(2**64 + 1)}]


@pytest.mark.parametrize(
    ("form", "text", "kind"),
    [
        (Format.json, '{"n":1e39}\n', pa.float32()),
        (Format.json, '{"n":[1e39]}\n', pa.list_(pa.float32())),
        (Format.csv, "n\n1e39\n", pa.float32()),
        (Format.csv, "n\n1e400\n", pa.float64()),
        (Format.csv, "n\n0.5\n1e400\n", None),
    ],
)
def test_floats_out_of_range(form: Format, text: str, kind: pa.DataType | None, read: Read) -> None:
    with pytest.raises(SchemaMismatch, match="out of range"):
        read(form, text, **({} if kind is None else {"n": kind}))


# ---------------------------------------------------------------- bytes, fields and times


@pytest.mark.parametrize(
    ("form", "text", "kind"),
    [
        (Format.json, '{"b":{"x":"AAAA"}}\n', pa.struct([("x", pa.binary())])),
        (Format.json, '{"b":["AAAA"]}\n', pa.list_(pa.binary())),
        (Format.json, '{"b":{"k":"AAAA"}}\n', pa.map_(pa.string(), pa.binary())),
        (Format.json, '{"b":"AAAA"}\n', pa.binary(4)),
        (Format.csv, "b\nAAAA\n", pa.binary(4)),
    ],
)
def test_bytes_are_not_read_from_text(
    form: Format, text: str, kind: pa.DataType, read: Read
) -> None:
    with pytest.raises(ConfigError, match=r"'b' (is binary|contains binary)"):
        read(form, text, b=kind)


def test_fields_of_structs_are_not_dropped(read: Read, tmp_path: Path) -> None:
    inner = pa.struct([("a", pa.int32())])
    text = '{"id":"1","s":{"a":1,"more":2},"l":[{"a":1},{"more":"x"}]}\n'
    (row,) = read(Format.json, text, id=pa.string(), s=inner, l=pa.list_(inner))
    assert row["s"] == {"a": 1, "more": 2}
    assert row["l"] == [{"a": 1, "more": None}, {"a": None, "more": "x"}]
    table = pyhudi.create_table(
        tmp_path / "t", pa.schema([("id", pa.string()), ("s", inner)]), key="id"
    )
    with pytest.raises(SchemaMismatch, match=r"no s\.more"):
        table.upsert(
            FileRows(_saved(tmp_path, '{"id":"1","s":{"more":2}}\n'), Format.json, table.schema)
        )


def test_moments_keep_their_zone(read: Read) -> None:
    local, moment = pa.timestamp("us"), pa.timestamp("us", "UTC")
    with pytest.raises(SchemaMismatch, match="no zone offset"):
        read(Format.json, '{"t":"2024-01-01T10:00:00+05:00"}\n', t=local)
    with pytest.raises(SchemaMismatch, match="no zone offset"):
        read(Format.json, '{"t":["2024-01-01T10:00:00Z"]}\n', t=pa.list_(local))
    at = datetime.datetime(2024, 1, 1, 5, tzinfo=datetime.timezone.utc)
    text = '{"t":"2024-01-01T10:00:00+05:00","s":[{"t":"2024-01-01T05:00:00Z"}]}\n'
    wanted = {"t": at, "s": [{"t": at}]}
    assert read(Format.json, text) == [wanted]
    assert read(Format.json, text, t=moment) == [wanted]
    (plain, _) = read(Format.json, '{"t":"2024-01-01T05:00:00"}\n{"t":"2024-01-01"}\n')
    assert plain == {"t": at.replace(tzinfo=None)}
    with pytest.raises(SchemaMismatch, match="a zone offset"):
        read(Format.json, '{"t":"2024-01-01T10:00:00Z"}\n{"t":"2024-01-01T10:00:00"}\n')


def test_json_export_imports_again(read: Read, tmp_path: Path) -> None:
    day, hour = datetime.date(2024, 1, 2), datetime.time(1, 2, 3, 4)
    inside = {"day": day, "at": hour, "t": datetime.datetime.combine(day, hour)}
    struct = pa.struct([("day", pa.date32()), ("at", pa.time64("us")), ("t", pa.timestamp("us"))])
    kinds: dict[str, pa.DataType] = {
        "id": pa.string(),
        "at": pa.time64("us"),
        "short": pa.time32("ms"),
        "s": struct,
        "l": pa.list_(struct),
        "m": pa.map_(pa.string(), MAPPED),
        "deep": pa.struct([("m", pa.map_(pa.string(), pa.list_(pa.date32())))]),
    }
    full = {
        "id": "a",
        "at": hour,
        "short": datetime.time(1, 2, 3, 4000),
        "s": inside,
        "l": [inside, None],
        "m": [("k", {"day": day, "n": Decimal("1.20"), "f": 0.5}), ("none", None)],
        "deep": {"m": [("k", [day])]},
    }
    rows = [full, dict.fromkeys(kinds), {**full, "l": [], "m": [], "deep": {"m": None}}]
    given = pa.RecordBatch.from_pylist(rows, pa.schema(list(kinds.items())))
    path = tmp_path / "out.jsonl"
    with open_for_writing(path, Format.json, given.schema) as write:
        write(given)
    assert read(Format.json, path.read_bytes(), **kinds) == given.to_pylist()


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('{"m":{"k":1.5}}\n', pa.int64()),
        (f'{{"m":{{"k":{BEYOND}}}}}\n', pa.float64()),
        ('{"m":{"k":1e39}}\n', pa.float32()),
        ('{"m":{"k":"2024-01-01T10:00:00Z"}}\n', pa.timestamp("us")),
        ('{"m":{"k":{"x":1,"more":2}}}\n', pa.struct([("x", pa.int64())])),
        ('{"m":{"k":1}}{"m":null}\n', pa.int64()),
    ],
)
def test_maps_change_no_value(text: str, kind: pa.DataType, read: Read) -> None:
    with pytest.raises(HudiError, match=r"'m'"):
        read(Format.json, text, m=pa.map_(pa.string(), kind))


def test_times_that_are_none(read: Read) -> None:
    for text in ("25:00:00", "10:00:00Z", "x"):
        with pytest.raises(SchemaMismatch, match="column 't' is time64"):
            read(Format.json, f'{{"t":"{text}"}}\n', t=pa.time64("us"))


# ---------------------------------------------------------------- the file itself


def test_long_lines_of_json(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    text = f'{{"id":"{"x" * 3_000_000}"}}\n{{"id":"b"}}\n'
    assert [len(row["id"]) for row in read(Format.json, text, id=pa.string())] == [3_000_000, 1]
    monkeypatch.setattr(json_reader, "_BLOCK", 1_000_000)
    with pytest.raises(ConfigError, match="longer than 1000000 bytes"):
        read(Format.json, text, id=pa.string())


def test_csv_names_file_that_is_not_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = pyhudi.create_table(tmp_path / "t", pa.table({"id": ["a"], "v": ["x"]}), key="id")
    path = tmp_path / "latin.jsonl"
    path.write_bytes(b'{"id":"a","v":"caf\xe9"}\n')
    assert main(["upsert", table.uri, str(path)]) == 3
    assert f"{path} is not UTF-8 text" in capsys.readouterr().err


def _nested(levels: int, brackets: str) -> str:
    opening, closing = ('{"a":', "}") if brackets == "{}" else ("[", "]")
    return f'{{"id":1,"x":{opening * levels}1{closing * levels}}}\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (_nested(65, "{}"), "64 levels deep"),
        (_nested(1_000, "[]"), "64 levels deep"),
        ('{"id":1,"x":null}\n' + _nested(20_000, "{}"), "64 levels deep"),
        (_nested(20_000, "[]"), "64 levels deep"),
        ("".join(f'{{"id":1,"c{n}":1}}\n' for n in range(20_000)), "10000 different names"),
        ("".join(f'{{"id":1,"x":{{"c{n}":1}}}}\n' for n in range(20_000)), "10000 different names"),
    ],
    ids=["objects", "lists", "row", "levels", "columns", "fields"],
)
def test_import_of_json_that_no_table_holds_is_refused(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """pyarrow's reader ended the process at 20,000 levels, and took 1.5 GB for as many names."""
    path = _saved(tmp_path, text)
    assert main(["import", str(tmp_path / "t"), str(path), "--key", "id"]) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "t").exists()


def test_json_as_deep_as_tables_are_read(read: Read) -> None:
    (row,) = read(Format.json, _nested(60, "{}"))
    assert row["id"] == 1


def test_names_of_maps_are_data(read: Read) -> None:
    text = "".join(f'{{"m":{{"k{n}":1,"l{n}":2}}}}\n' for n in range(60))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_reader, "_MAX_NAMES", 100)
        rows = read(Format.json, text, m=pa.map_(pa.string(), pa.int64()))
        assert rows[59] == {"m": [("k59", 1), ("l59", 2)]}
        with pytest.raises(ConfigError, match="100 different names"):
            read(Format.json, text)


def _saved(folder: Path, text: str) -> Path:
    path = folder / "rows.jsonl"
    path.write_text(text)
    return path


# ---------------------------------------------------------------- files that are none


@pytest.mark.parametrize(
    ("form", "text", "hint"),
    [
        (Format.csv, "", "names of its columns"),
        (Format.csv, "id;v\n1;2,5\n", "--delimiter ';'"),
        (Format.csv, "id|v\n", "--delimiter '|'"),
        (Format.csv, "id,v\n", "--schema"),
        (Format.csv, b"id,v\n1,caf\xe9\n", "iconv"),
        (Format.csv, b"id,caf\xe9\n1,2\n", "iconv"),
        (Format.csv, b"id,v\n" + b"1,a\n" * 300_000 + b"1,caf\xe9\n", "iconv"),
        (Format.json, '\n [{"id": 1}]', "one object per line"),
        (Format.json, "[]", "one object per line"),
    ],
)
def test_wrong_file_format_error_names_right_option(
    form: Format, text: str | bytes, hint: str, read: Read
) -> None:
    with pytest.raises(ConfigError) as raised:
        read(form, text)
    assert hint in raised.value.hint


CONTROLS = "a\x1b[31m\x7f\x80\x9b31m\x9f\xa0b"
"""Orders to a terminal, of 7 bits and of 8; the last is none."""


def test_json_lines_escape_control_characters_of_8_bits(tmp_path: Path) -> None:
    kinds = pa.schema([("t\x9b", pa.string()), ("m", pa.map_(pa.string(), pa.string()))])
    rows = pa.RecordBatch.from_pylist([{"t\x9b": CONTROLS, "m": [("k\x85", "\x90")]}], kinds)
    text = json_lines(rows)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", text)
    assert "\xa0" in text
    assert json.loads(text)["t\x9b"] == CONTROLS


@pytest.mark.parametrize("form", list(Format))
def test_export_to_a_terminal_sends_no_control_characters(
    form: Format, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = pa.RecordBatch.from_pylist([{"id": CONTROLS, "v": "é"}] * 3)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)

    def export() -> None:
        with open_for_writing(Path("-"), form, rows.schema) as write:
            write(rows)

    if form in {Format.parquet, Format.arrow}:
        with pytest.raises(ConfigError, match="standard output is a terminal"):
            export()
        return
    export()
    shown = capsys.readouterr().out
    assert shown.count("é") == 3
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", shown)
