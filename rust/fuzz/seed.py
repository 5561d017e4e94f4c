"""Fills `corpus/<target>`: the kept corpus, and real files of the crates' tests.

`make fuzz` runs it first. `seed.py keep` packs what the corpus has become (`make fuzz-keep`).
"""

from __future__ import annotations

import base64
import pathlib
import sys
import zipfile

HERE = pathlib.Path(__file__).parent
DATA = HERE.parent / "format" / "tests" / "data"
AVRO = HERE.parent / "avro" / "tests" / "data"
RECORD = "02026b010002020a020000000005020202020002026102000000"
FILTERS = {
    "simple": "/////wAAAAcBAAAAYBIgAEEgAEQCgAIAQA==",
    "dynamic": "/////wAAAAcBAAAAFAAAAAIAAAADAAAAAv////8AAAAHAQAAABRvNg7/////AAAABwEAAAAU+GIE",
}
LISTS = {
    "two": "04" + "020264" + "0200" + "0400" + "020263" + "0200" + "0400" + "00",
    "array": "02" + "02026b" + "00" + "18" + "02" + "04" + "040e" + "0e0261" + "00" + "00",
}


VARIANTS = {
    "object": "0c" + "010300030406" + "6167656f6162" + "0203000102000205170cff09426f02020304",
    "array": "03" + "010000" + "03030002040b0c010c0202010000020c07",
    "decimal": "03" + "010000" + "2002e2040000",
    "json": b'{"a":[1,-2.50,1e9,null,true],"b":{"c":"\\u00fc"}}'.hex(),
}
POSITIONS = {
    "two": "01" + "00" * 11 + "3a300000" + "01000000" + "00000100" + "10000000" + "01000300",
    "run": "01" + "00" * 11 + "3b300000" + "01" + "0000ffff" + "01000000ffff",
}
CORPUS = HERE / "corpus"
KEPT = HERE / "kept"


def put(target: str, name: str, data: bytes) -> None:
    """Writes one seed."""
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


def unpack() -> None:
    """Puts the kept corpus back."""
    for kept in KEPT.glob("*.zip"):
        with zipfile.ZipFile(kept) as files:
            files.extractall(CORPUS / kept.stem)


def keep() -> None:
    """Packs each corpus, byte by byte the same for the same inputs."""
    for folder in sorted(CORPUS.iterdir()):
        inputs = {path.read_bytes() for path in folder.iterdir()}
        with zipfile.ZipFile(KEPT / f"{folder.name}.zip", "w") as kept:
            for number, data in enumerate(sorted(inputs, key=lambda one: (len(one), one))):
                entry = zipfile.ZipInfo(f"kept{number}")
                kept.writestr(entry, data, zipfile.ZIP_LZMA)


def seed() -> None:
    """Writes the seeds of the crates' own test data."""
    for path in sorted((DATA / "log").iterdir()):
        put("log_scan", path.name, path.read_bytes())
    for path in sorted((DATA / "hfile").iterdir()):
        put("hfile", path.name, path.read_bytes()[:-4].rstrip(b"\0"))
    for path in sorted((DATA / "orc").iterdir()):
        put("orc", path.name, path.read_bytes())
    for name in ("v6_mor_archived.clean", "v9_mor_all_types.deltacommit"):
        put("container", name, (AVRO / name).read_bytes())
    put("records", "one", bytes.fromhex(RECORD))
    put("datum", "one", bytes.fromhex("00" + "02" + "02" + "0261" + "0800" + "00" + "0206"))
    for name, text in FILTERS.items():
        put("bloom", name, base64.b64decode(text))
        put("bloom", name + ".txt", text.encode())
    for name, text in POSITIONS.items():
        put("positions", name, bytes.fromhex(text))
    for name, text in VARIANTS.items():
        put("variant", name, bytes.fromhex(text))
    for name, text in LISTS.items():
        put("delete_list", name, bytes.fromhex(text))
    kryo = (HERE.parent / "format" / "src" / "log" / "kryo" / "tests.rs").read_text()
    for number, text in enumerate(kryo.split('= "')[1:]):
        digits = text.split('"')[0]
        if digits.startswith("0100"):
            put("delete_list", f"kryo{number}", bytes.fromhex(digits))


if __name__ == "__main__":
    if sys.argv[1:] == ["keep"]:
        keep()
    else:
        unpack()
        seed()
