"""The pages about the format say what is in log files of Hudi, and what its hashes give.

The hashes are computed here a second time, from the rules on the page and without pyhudi's core.
"""

from __future__ import annotations

import base64
import hashlib
import re
import struct
import uuid
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.helpers.tables import unpack

FORMAT = Path(__file__).parents[2] / "docs" / "format"
HASHES = (FORMAT / "hashes.md").read_text(encoding="utf-8")
LOG_FILES = (FORMAT / "log-files.md").read_text(encoding="utf-8")
DELETE, AVRO_DATA, COMMAND = 1, 3, 0
BITS = 2_587_966


class Block(NamedTuple):
    """What the page says of a block."""

    kind: int
    header: dict[int, bytes]
    content: bytes


def rows_below(heading: str, page: str = HASHES) -> list[list[str]]:
    """The rows of the first table below a line that begins so, without marks of code."""
    lines = page[page.index(heading) :].splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith("|"))
    table = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        table.append([cell.strip().strip("`") for cell in line.strip("|").split("|")])
    return table


def signed(number: int) -> int:
    return (number + 2**31) % 2**32 - 2**31


def java_hash(text: str) -> int:
    units = struct.unpack(f"<{len(text.encode('utf-16-le')) // 2}H", text.encode("utf-16-le"))
    value = 0
    for unit in units:
        value = signed(31 * value + unit)
    return value


def bucket(values: list[str | None], count: int) -> int:
    total = 1
    for value in values:
        total = signed(31 * total + (0 if value is None else java_hash(value)))
    return (total & 0x7FFFFFFF) % count


def murmur(data: bytes, seed: int) -> int:
    m, mask = 0x5BD1E995, 0xFFFFFFFF
    h = (seed ^ len(data)) & mask
    whole = len(data) // 4 * 4
    for (word,) in struct.iter_unpack("<I", data[:whole]):
        k = word * m & mask
        k ^= k >> 24
        h = (h * m & mask) ^ (k * m & mask)
    if rest := data[whole:]:
        for shift, byte in zip((0, 8, 16), reversed(rest), strict=False):
            h ^= (byte - 256 if byte > 127 else byte) << shift & mask
        h = h * m & mask
    h ^= h >> 13
    h = h * m & mask
    return signed(h ^ h >> 15)


def blocks(data: bytes) -> Iterator[Block]:
    at = 0
    while at < len(data):
        assert data[at : at + 6] == b"#HUDI#"
        length, version, kind, count = struct.unpack_from(">qiii", data, at + 6)
        assert version == 1
        here, header = at + 26, {}
        for _ in range(count):
            key, size = struct.unpack_from(">ii", data, here)
            header[key] = data[here + 8 : here + 8 + size]
            here += 8 + size
        (size,) = struct.unpack_from(">q", data, here)
        content = data[here + 8 : here + 8 + size]
        footer, trailing = struct.unpack_from(">iq", data, here + 8 + size)
        assert (footer, trailing) == (0, length + 6)
        assert here + 8 + size + 12 == at + 14 + length == at + trailing + 8
        yield Block(kind, header, content)
        at += 14 + length


@pytest.mark.parametrize("name", ["v6_mor_rollback", "v8_mor_part_avro", "v9_mor_all_types"])
def test_log_files_page_describes_blocks_of_hudi(name: str, tmp_path: Path) -> None:
    table = unpack(name, tmp_path)
    files = [file for file in table.rglob(".*.log.*") if ".hoodie" not in file.parts]
    found = [block for file in files for block in blocks(file.read_bytes())]
    assert AVRO_DATA in {block.kind for block in found}
    names = {int(key) for key, *_ in rows_below("## Header keys", LOG_FILES)}
    version = int(name[1])
    for block in found:
        assert set(block.header) <= names
        assert version > 6 or not set(block.header) & {7, 8}
        if block.kind == COMMAND:
            assert (set(block.header), block.content) == ({0, 1, 3}, b"")
            continue
        (content_version, count) = struct.unpack_from(">ii", block.content)
        assert content_version == 3
        if block.kind == DELETE:
            assert len(block.content) == 8 + count
            continue
        here = 8
        for _ in range(count):
            here += 4 + struct.unpack_from(">i", block.content, here)[0]
        assert here == len(block.content)


def test_hashes_page_has_murmur_of_keys() -> None:
    rows = rows_below("## Bloom filters")
    assert len(rows) == 6
    for key, hexadecimal, first, second, *positions in rows:
        data = key.encode()
        hashed = murmur(data, 0), murmur(data, murmur(data, 0))
        assert (data.hex(), *map(str, hashed)) == (hexadecimal, first, second)
        assert [str(abs(value) % BITS) for value in hashed] == positions


def test_hashes_page_has_metadata_keys() -> None:
    rows = rows_below("## Keys of the metadata table")
    assert len(rows) == 6
    for key, hashed, hexadecimal, md5 in rows:
        assert base64.b64decode(hashed).hex() == hexadecimal
        assert base64.b64encode(hashlib.md5(key.encode()).digest()).decode() == md5


def test_hashes_page_has_buckets() -> None:
    rows = rows_below("## Buckets")
    nodes = [int(value) for value, _ in rows_below("Nodes of the partition")]
    assert len(rows) == 6
    for key, hashed, group, of_four, of_many, xxh32, node in rows:
        assert java_hash(key) == int(hashed)
        assert abs(java_hash(key)) % 10 == int(group)
        assert (bucket([key], 4), bucket([key], 256)) == (int(of_four), int(of_many))
        place = int(xxh32) & 0x7FFFFFFF
        assert sum(value < place for value in nodes) + 1 == int(node)


def test_hashes_page_has_buckets_of_composite_keys() -> None:
    values: dict[str, tuple[list[str | None], list[str | None]]] = {
        "id:k1": (["id:k1"], ["id:k1"]),
        "id:k1,city:sf": (["k1", "sf"], ["k1"]),
        "id:a,b,city:sf": (["a,b", "sf"], ["a,b"]),
        "id:2014-10-22 13:50:42,city:sf": (["2014-10-22 13:50:42", "sf"], ["2014-10-22 13:50:42"]),
        "id:__null__,city:__empty__": ([None, ""], [None]),
    }
    rows = rows_below("The values of the hash fields are cut out")
    assert [row[0] for row in rows] == list(values)
    for key, both, single in rows:
        assert [bucket(part, 256) for part in values[key]] == [int(both), int(single)]


def test_hashes_page_has_consistent_hashing_nodes() -> None:
    rows = rows_below("Nodes of the partition")
    step, start = -(-(2**31 - 1) // 4), 0
    for number, (value, prefix) in enumerate(rows, 1):
        end = min(step * number, 2**31 - 1)
        digest = hashlib.md5(struct.pack(">qq", start, end) + b"sf").digest()
        assert (str(end), str(uuid.UUID(bytes=digest, version=3))) == (value, prefix)
        start = end


def test_hashes_page_has_checksums_of_properties() -> None:
    found = re.findall(r"(?:database `(\w+)`, )?name `(\w+)` \| (\d+) \|", HASHES)
    assert [(zlib.crc32(f"{base}.{name}".encode()), base, name) for base, name, _ in found] == [
        (int(checksum), base, name) for base, name, checksum in found
    ]
    assert len(found) == 2
