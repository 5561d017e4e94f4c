r"""The text of `hoodie.properties`: Java's properties format and Hudi's checksum of it.

This module knows only text and keys; `config/table_config.py` interprets the keys, and
`properties_file.py` reads and replaces the file. The format (`java.util.Properties`): ISO-8859-1,
one `key=value` a logical line, `#` or `!` starts a comment, a line that ends in an odd number of
backslashes continues in the next one, and `\uXXXX` is a UTF-16 unit.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping, Sequence

from pyhudi.errors import CorruptTable

CHECKSUM = "hoodie.table.checksum"
TABLE_NAME = "hoodie.table.name"
DATABASE_NAME = "hoodie.database.name"

_MAX_BYTES = 16 << 20
_CHECKSUM_COMMENT = b"#pyhudi.crc32="
_MAX_FLIPPED = 8
"""Maximum number of bits in which the beginning of a file differs from a damaged comment."""
_BLANKS = " \t\f"
_LINE = re.compile(r"([^\r\n]*)(\r\n|\r|\n|$)")
_KEY_END = re.compile(rf"(?:[^\\=:{_BLANKS}]|\\.|\\$)*", re.DOTALL)
_SEPARATOR = re.compile(rf"[{_BLANKS}]*[=:]?[{_BLANKS}]*")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.|$)", re.DOTALL)
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_UNESCAPED = {value: f"\\{letter}" for letter, value in _ESCAPED.items()}
_PRINTABLE = range(0x20, 0x7F)


def parse_properties(data: bytes, file: str) -> dict[str, str]:
    r"""Return keys and values in the order of the file; the last value of a repeated key counts.

    Raises `CorruptTable` with `file` and the offset of a broken `\u` escape or of a zero byte: no
    writer makes one, but a file that was not completely written can have some.
    """
    if len(data) > _MAX_BYTES:
        raise _corrupt_error(file, _MAX_BYTES, f"it has {len(data)} bytes, {_MAX_BYTES} at most")
    zero = data.find(b"\0")
    if zero >= 0:
        raise _corrupt_error(file, zero, "a zero byte")
    properties: dict[str, str] = {}
    for line in _logical_lines(data.decode("latin-1"), file):
        key_end = _match_end(_KEY_END, line, 0)
        value_start = _match_end(_SEPARATOR, line, key_end)
        properties[_unescape(line[:key_end])] = _unescape(line[value_start:])
    return properties


def _match_end(pattern: re.Pattern[str], text: str, start: int) -> int:
    match = pattern.match(text, start)
    return match.end() if match else start


def _logical_lines(text: str, file: str) -> Iterator[str]:
    """Yield each logical line with content, its escapes checked but not replaced."""
    line_so_far: str | None = None
    for match in _LINE.finditer(text):
        line = match.group(1).lstrip(_BLANKS)
        if line_so_far is None and (not line or line[0] in "#!"):
            continue
        _check_escapes(line, match.end(1) - len(line), file)
        if (len(line) - len(line.rstrip("\\"))) % 2:
            line_so_far = (line_so_far or "") + line[:-1]
            continue
        yield (line_so_far or "") + line
        line_so_far = None
    if line_so_far is not None:
        yield line_so_far


def _check_escapes(line: str, offset: int, file: str) -> None:
    for match in _ESCAPE.finditer(line):
        if match.group(1) == "u":
            problem = "a \\u escape without four hexadecimal digits"
            raise _corrupt_error(file, offset + match.start(), problem)


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    units = _ESCAPE.sub(lambda match: _character(match.group(1)), text)
    return units.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _character(escape: str) -> str:
    return chr(int(escape[1:], 16)) if len(escape) > 1 else _ESCAPED.get(escape, escape)


def _corrupt_error(file: str, offset: int, problem: str) -> CorruptTable:
    return CorruptTable(f"{file}: {problem} at byte {offset}", file=file, offset=offset)


def render_properties(properties: Mapping[str, str], comments: Sequence[str] = ()) -> bytes:
    """Return the file's bytes: the comments as `#` lines, then every property in order."""
    lines = [f"#{comment}" for comment in comments]
    lines += [
        f"{_escape(key, blanks=True)}={_escape(value, blanks=False)}"
        for key, value in properties.items()
    ]
    return "".join(f"{line}\n" for line in lines).encode("latin-1")


def _escape(text: str, *, blanks: bool) -> str:
    """Escape a text. blanks: escape every blank, as in keys; else only leading ones."""
    body = text if blanks else text.lstrip(" ")
    leading = "\\ " * (len(text) - len(body))
    return leading + "".join(_escape_character(character, blanks=blanks) for character in body)


def _escape_character(character: str, *, blanks: bool) -> str:
    if character in _UNESCAPED:
        return _UNESCAPED[character]
    if character in "\\=:#!" or (blanks and character == " "):
        return f"\\{character}"
    if ord(character) in _PRINTABLE:
        return character
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i : i + 2].hex().upper()}" for i in range(0, len(units), 2))


def with_checksum_comment(text: bytes) -> bytes:
    """Return a properties file that begins with a comment with the CRC-32 of the text.

    Java ignores the comment, and Hudi drops it if it replaces the file.
    """
    return b"%s%08x\n%s" % (_CHECKSUM_COMMENT, zlib.crc32(text), text)


def has_wrong_checksum_comment(data: bytes) -> bool:
    """Return whether a properties file differs from the checksum in its first comment.

    A person may have edited the file.
    """
    start = data[: len(_CHECKSUM_COMMENT)].ljust(len(_CHECKSUM_COMMENT), b"\0")
    flipped = int.from_bytes(start, "big") ^ int.from_bytes(_CHECKSUM_COMMENT, "big")
    if f"{flipped:b}".count("1") > _MAX_FLIPPED:
        return False
    line, _, text = data.partition(b"\n")
    return line != b"%s%08x" % (_CHECKSUM_COMMENT, zlib.crc32(text))


def partition_metadata(instant: str, depth: int) -> bytes:
    """Return the content of a partition's metadata file."""
    text = f"#partition metadata\ncommitTime={instant}\npartitionDepth={depth}\n"
    return with_checksum_comment(text.encode())


def checksum(properties: Mapping[str, str]) -> str:
    """Return Hudi's checksum of properties: CRC-32 of `<database name>.<table name>`, decimal.

    Nothing else is covered (`HoodieTableConfig.generateChecksum`, Hudi 0.15.0 to 1.2.0).
    """
    database = properties.get(DATABASE_NAME, "")
    return str(zlib.crc32(f"{database}.{properties.get(TABLE_NAME, '')}".encode()))


def has_valid_checksum(properties: Mapping[str, str]) -> bool:
    """Return whether the checksum exists and is right."""
    return properties.get(CHECKSUM) == checksum(properties)
