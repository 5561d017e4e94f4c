"""Checks what is to be published: `python scripts/check_release.py TAG FOLDER`.

The tag, the packages and both version numbers of the sources must agree, a wheel must be there for
each system, and each wheel must contain its SBOM and its licence.
"""

from __future__ import annotations

import json
import re
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
SYSTEMS = (
    "manylinux_2_17_x86_64",
    "manylinux_2_17_aarch64",
    "macosx_*_x86_64",
    "macosx_*_arm64",
    "win_amd64",
)
"""The ends of the wheels' names."""


def main(tag: str, folder: Path) -> int:
    """Print what is wrong; return the exit code."""
    wrong = [*check_versions(tag), *check_packages(tag.removeprefix("v"), folder)]
    for line in wrong:
        print(f"check_release: {line}", file=sys.stderr)
    if not wrong:
        print(f"check_release: {tag} can be published")
    return 1 if wrong else 0


def check_versions(tag: str) -> list[str]:
    """Return where the sources have another version than the tag."""
    wrong = []
    for name in ("pyproject.toml", "Cargo.toml"):
        text = (ROOT / name).read_text("utf-8")
        match = re.search(r'^version = "([^"]+)"', text, re.MULTILINE)
        if match is None or tag != f"v{match[1]}":
            wrong.append(f"{name} has version {match and match[1]}, the tag is {tag}")
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    if f"## {tag.removeprefix('v')} (2" not in changes:
        wrong.append(f"CHANGELOG.md has no date for {tag}")
    return wrong


def check_packages(version: str, folder: Path) -> list[str]:
    """Return which packages are missing, have another version, or lack a file."""
    wrong = [
        f"expected one wheel of version {version} for {system}"
        for system in SYSTEMS
        if len(list(folder.glob(f"pyhudi-{version}-cp310-abi3-*{system}*.whl"))) != 1
    ]
    sources = folder / f"pyhudi-{version}.tar.gz"
    if not sources.exists():
        wrong.append(f"{sources.name} is missing")
    else:
        with tarfile.open(sources) as archive:
            wrong += _check_metadata(sources, archive_metadata(archive, version), version)
    for path in sorted(folder.iterdir()):
        if not path.name.startswith(f"pyhudi-{version}"):
            wrong.append(f"{path.name} is not of version {version}")
        elif path.suffix == ".whl":
            wrong += check_wheel(path, version)
    return wrong


def archive_metadata(archive: tarfile.TarFile, version: str) -> str:
    """Return the metadata of a source distribution."""
    file = archive.extractfile(f"pyhudi-{version}/PKG-INFO")
    return "" if file is None else file.read().decode()


def check_wheel(path: Path, version: str) -> list[str]:
    """Return what a wheel lacks."""
    info = f"pyhudi-{version}.dist-info"
    with zipfile.ZipFile(path) as wheel:
        names = wheel.namelist()
        wrong = _check_metadata(path, wheel.read(f"{info}/METADATA").decode(), version)
        if f"{info}/licenses/LICENSE" not in names:
            wrong.append(f"{path.name} has no licence")
        boms = [name for name in names if name.startswith(f"{info}/sboms/")]
        if not any(json.loads(wheel.read(name)).get("components") for name in boms):
            wrong.append(f"{path.name} has no SBOM that lists components")
        if not any(re.fullmatch(r"pyhudi/_native\.(abi3\.so|pyd)", name) for name in names):
            wrong.append(f"{path.name} has no compiled module")
    return wrong


def _check_metadata(path: Path, metadata: str, version: str) -> list[str]:
    lines = metadata.splitlines()
    expected = ("Name: pyhudi", f"Version: {version}", "License-Expression: Apache-2.0")
    return [f"{path.name}: no line {line!r}" for line in expected if line not in lines]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
