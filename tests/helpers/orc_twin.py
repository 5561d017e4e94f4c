"""A table of version 6 once more with ORC base files: the same rows in the same slices.

Only rows and names are turned. Meta values such as `_hoodie_file_name` and sizes in commits stay
as they were.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow.parquet as pq
from pyarrow import orc


def orc_twin(base: Path, twin: Path) -> Path:
    """A copy of a table without a metadata table, whose base files are ORC.

    Commits are JSON in this version.
    """
    shutil.copytree(base, twin)
    for file in twin.rglob("*.parquet"):
        orc.write_table(pq.read_table(file), file.with_suffix(".orc"), compression="zlib")
        file.unlink()
    for file in (twin / ".hoodie").rglob("*"):
        if file.is_file() and b".parquet" in file.read_bytes():
            file.write_bytes(file.read_bytes().replace(b".parquet", b".orc"))
    properties = twin / ".hoodie" / "hoodie.properties"
    with properties.open("a", encoding="utf-8") as lines:
        lines.write("hoodie.table.base.file.format=ORC\n")
    return twin
