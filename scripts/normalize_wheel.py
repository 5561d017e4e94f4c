"""Removes what differs between two builds: `python scripts/normalize_wheel.py WHEEL...`.

maturin writes an SBOM whose number is random, and which names the time of the build and the folder
of the sources. Everything else depends on the sources and the tools: see `reproducible.sh`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
import zipfile
from pathlib import Path

_FOLDER = re.compile(rb"path\+file://[^\"#]*?/rust/")
_FIRST = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip file can name; maturin's, too."""


def normalize(path: Path) -> None:
    """Rewrite a wheel in place."""
    with zipfile.ZipFile(path) as wheel:
        infos = wheel.infolist()
        contents = {info.filename: wheel.read(info) for info in infos}
    for name, content in contents.items():
        if "/sboms/" in name:
            contents[name] = normal_sbom(content)
    (record,) = (name for name in contents if name.endswith(".dist-info/RECORD"))
    contents[record] = record_of(contents, record)
    with zipfile.ZipFile(path, "w") as wheel:
        for old in infos:
            info = zipfile.ZipInfo(old.filename, _FIRST)
            info.external_attr, info.create_system = old.external_attr, 3
            wheel.writestr(info, contents[old.filename], zipfile.ZIP_DEFLATED, 9)


def normal_sbom(content: bytes) -> bytes:
    """Return an SBOM without its number, its time, and the folder of the sources."""
    bom = json.loads(_FOLDER.sub(b"path+file:///pyhudi/rust/", content))
    bom.pop("serialNumber", None)
    bom.get("metadata", {}).pop("timestamp", None)
    return json.dumps(bom, indent=2, ensure_ascii=False).encode() + b"\n"


def record_of(contents: dict[str, bytes], record: str) -> bytes:
    """Return the list of a wheel's files with their hashes and sizes, in their order."""
    lines = []
    for name, content in contents.items():
        if name != record:
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=")
            lines.append(f"{name},sha256={digest.decode()},{len(content)}\n")
    return "".join([*lines, f"{record},,\n"]).encode()


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        normalize(Path(argument))
