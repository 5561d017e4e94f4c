"""Java's properties text: escapes, continuation, damage, and files that Apache Hudi wrote."""

from __future__ import annotations

import pytest

from pyhudi.errors import CorruptTable
from pyhudi.storage.properties import (
    CHECKSUM,
    checksum,
    has_valid_checksum,
    parse_properties,
    render_properties,
)
from tests.helpers.tables import GoldenTables, names


def parsed(text: str) -> dict[str, str]:
    return parse_properties(text.encode("latin-1"), "p")


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("a=b", "a", "b"),
        ("  a = b ", "a", "b "),
        ("a:b=c", "a", "b=c"),
        ("a b:c", "a", "b:c"),
        ("a", "a", ""),
        ("a=", "a", ""),
        ("=b", "", "b"),
        ("a\\ b\\=c\\:d=e", "a b=c:d", "e"),
        ("a=\\ b", "a", " b"),
        ("a=\\u00e9\\uD83D\\uDE00", "a", "é😀"),
        ("a=\xe9", "a", "é"),
        ("a=x\\ty\\nz\\q\\\\", "a", "x\ty\nzq\\"),
        ("a=b\\\n   c\\\r\n\td", "a", "bcd"),
        ("a=b\\\n#c", "a", "b#c"),
        ("a=b\\\\\n", "a", "b\\"),
        ("a=b\\", "a", "b"),
    ],
)
def test_properties_parse_single_property(text: str, key: str, value: str) -> None:
    assert parsed(text) == {key: value}


def test_comments_blank_lines_and_line_ends() -> None:
    assert parsed("#c=1\r! d=2\n\n \t\f\na=1\r\n  # e\nb=2\ra=3") == {"a": "3", "b": "2"}


@pytest.mark.parametrize(
    ("data", "offset"),
    [(b"a=1\nb=\\u12", 6), (b"#\\u1\nb=x\\uzzzz", 8), (b"a=1\\\n \\u", 6), (b"a=1\n\0\0", 4)],
)
def test_damage_names_file_and_offset(data: bytes, offset: int) -> None:
    with pytest.raises(CorruptTable, match=f"f/p: .* at byte {offset}") as error:
        parse_properties(data, "f/p")
    assert (error.value.file, error.value.offset) == ("f/p", offset)


@pytest.mark.parametrize(
    "properties",
    [
        {},
        {"": ""},
        {"a b": " c d ", "k=:#!": "v=:#!\\", "tab\t": "\n\r\f\t"},
        {"é": "é😀\x00\x7f", "schema": '{"type":"record","fields":[]}'},
    ],
)
def test_rendered_text_parses_to_the_same(properties: dict[str, str]) -> None:
    data = render_properties(properties, ["a comment"])
    assert data.startswith(b"#a comment\n")
    data.decode("ascii")
    assert parse_properties(data.replace(b"\x00", b""), "p") == properties


def test_unknown_keys_and_order_survive() -> None:
    text = "z=1\nunknown.key=2\na=3\n"
    assert render_properties(parsed(text)).decode() == text


@pytest.mark.parametrize(
    ("database", "table", "wanted"),
    [("", "mor", "2110273562"), ("default", "si", "4159196972")],
)
def test_checksum_is_that_of_java(database: str, table: str, wanted: str) -> None:
    properties = {"hoodie.database.name": database, "hoodie.table.name": table}
    assert checksum(properties) == wanted
    assert not has_valid_checksum(properties)
    assert has_valid_checksum({**properties, CHECKSUM: wanted})


@pytest.mark.parametrize("name", names())
def test_properties_files_of_hudi_round_trip(name: str, golden: GoldenTables) -> None:
    data = (golden.unpack(name) / ".hoodie" / "hoodie.properties").read_bytes()
    properties = parse_properties(data, name)
    assert has_valid_checksum(properties)
    lines = [line for line in data.splitlines(keepends=True) if not line.startswith(b"#")]
    assert render_properties(properties) == b"".join(lines)
