"""The main job on one screen: a table that Apache Hudi wrote is read, changed and read again.

Works on a copy in a temporary folder. No JVM, no Spark.
"""

from __future__ import annotations

import sys
import tempfile
import zipfile
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

import pyhudi

ARCHIVE = Path(__file__).parents[1] / "tests" / "fixtures" / "tables" / "v9_mor_no_metadata.zip"


def main() -> None:
    """Shows, changes and shows the table again."""
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(ARCHIVE) as archive:
            archive.extractall(folder)
        base = Path(folder) / ARCHIVE.stem
        before = files(base)
        table = pyhudi.open_table(str(base))

        title("A merge-on-read table as Apache Hudi 1.2.0 left it")
        show(rows(table))

        title("Upsert: k001 changes, k900 is new")
        fresh = rows(table).filter(pc.equal(rows(table)["id"], "k001"))
        changed = set_columns(fresh, name="Ana Lima", amount=Decimal("99.50"), ts=1_000)
        new = set_columns(fresh, id="k900", name="Noor", age=31, ts=1_000)
        say(table.upsert(pa.concat_tables([changed, new])))

        title("Delete: k002, by its key")
        gone = rows(table).filter(pc.equal(rows(table)["id"], "k002"))
        say(table.delete_keys(gone.select(["id", "city"])))

        title("The merged snapshot")
        show(rows(pyhudi.open_table(str(base))))

        title("The timeline")
        show(pyhudi.open_table(str(base)).inspect.timeline().drop_columns(["file"]))

        title("The files on disk (+ is ours)")
        for path, size in sorted(files(base).items()):
            line(f"{'+' if path not in before else ' '} {size:>7,} B  {path}")


def rows(table: pyhudi.HudiTable) -> pa.Table:
    """The current snapshot, in key order."""
    found: pa.Table = table.scan().to_arrow()
    return found.sort_by("id")


def set_columns(data: pa.Table, **values: object) -> pa.Table:
    """The same rows with other values in some columns."""
    for name, value in values.items():
        field = data.schema.field(name)
        column = pa.array([value] * len(data), field.type)
        data = data.set_column(data.schema.get_field_index(name), field, column)
    return data


def files(base: Path) -> dict[str, int]:
    """Every file of the table that tells something, with its size in bytes."""
    found = (path for path in base.rglob("*") if path.is_file())
    return {str(path.relative_to(base)): path.stat().st_size for path in found}


def show(data: pa.Table) -> None:
    """Prints rows as columns of text."""
    names = data.column_names
    cells = [names, *([str(row[name]) for name in names] for row in data.to_pylist())]
    widths = [max(len(row[i]) for row in cells) for i in range(len(names))]
    for row in cells:
        line("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)))
    line(f"({len(data)} rows)")


def say(result: object) -> None:
    """Prints what a verb did."""
    line(str(result))


def title(text: str) -> None:
    """Prints a heading."""
    line(f"\n== {text}")


def line(text: str) -> None:
    """Prints one line."""
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    main()
