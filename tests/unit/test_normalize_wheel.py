"""Wheels of two builds have the same bytes once what differs is removed."""

from __future__ import annotations

import base64
import hashlib
import json
import zipfile
from pathlib import Path

from scripts.normalize_wheel import normalize

INFO = "pyhudi-1.0.dist-info"
SBOM = f"{INFO}/sboms/pyhudi-native.cyclonedx.json"


def make(path: Path, serial: str, time: str, folder: str, year: int) -> Path:
    """A wheel as maturin writes it, of a build in a folder."""
    reference = f"path+file://{folder}/rust/native#pyhudi-native@1.0"
    metadata = {"timestamp": time, "component": {"bom-ref": reference}}
    bom = {"serialNumber": serial, "metadata": metadata, "components": [{"name": "arrow"}]}
    contents = {
        "pyhudi/__init__.py": b"",
        SBOM: json.dumps(bom).encode(),
        f"{INFO}/RECORD": b"pyhudi/__init__.py,sha256=0,0\n",
    }
    with zipfile.ZipFile(path, "w") as wheel:
        for name, content in contents.items():
            wheel.writestr(zipfile.ZipInfo(name, (year, 1, 1, 0, 0, 0)), content)
    return path


def test_normalize_removes_what_differs_between_builds(tmp_path: Path) -> None:
    one = make(tmp_path / "one.whl", "urn:uuid:1", "2026-01-01T00:00:00Z", "/home/a", 2026)
    other = make(tmp_path / "other.whl", "urn:uuid:2", "2026-02-02T00:00:00Z", "/b/c", 2025)
    normalize(one)
    normalize(other)
    assert one.read_bytes() == other.read_bytes()
    with zipfile.ZipFile(one) as wheel:
        bom = json.loads(wheel.read(SBOM))
        lines = wheel.read(f"{INFO}/RECORD").decode().splitlines()
        digest = hashlib.sha256(wheel.read(SBOM)).digest()
    assert bom["components"] == [{"name": "arrow"}]
    assert bom["metadata"]["component"]["bom-ref"].startswith("path+file:///pyhudi/rust/native#")
    text = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    assert [line for line in lines if line.startswith(f"{SBOM},sha256={text},")]
    assert lines[-1] == f"{INFO}/RECORD,,"
    before = one.read_bytes()
    normalize(one)
    assert one.read_bytes() == before
