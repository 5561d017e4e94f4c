"""Log files that hold blocks of several commits, as Hudi 0.15.0 leaves them on HDFS.

pyhudi begins a new log file with each commit, on whatever storage. Up to table version 6 Hudi
appends to the newest one of the slice where it can (`HoodieLogFormatWriter.getOutputStream`).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyhudi
from pyhudi import HudiTable


def appended_to(table: HudiTable) -> HudiTable:
    """The table, as if its newest commit had appended to the log files that were there before.

    Of a table of version 6 without metadata table, which would tell of a file for each commit.
    """
    base = Path(table.uri)
    newest = table.refresh().state.timeline.commits[-1]
    path = base / ".hoodie" / f"{newest.requested}.{newest.completed_action}"
    metadata = json.loads(path.read_text())
    for stats in metadata["partitionToWriteStats"].values():
        for stat in stats:
            if len(stat.get("logFiles") or ()) > 1:
                stat.update(_appended(base, stat))
    path.write_text(json.dumps(metadata))
    return pyhudi.open_table(base, options=table.options)


def begun_in_a_log(table: HudiTable) -> HudiTable:
    """The table without its first commit and base file, as by an index that looks into log files.

    Of one file group, all of whose log files share a name but for the version. They are named by
    the commit that began the slice then, as all of them are from version 8 on.
    """
    base = Path(table.uri)
    first, second, *_ = instants = [one.requested for one in table.state.timeline.commits]
    (parquet,) = base.rglob("*.parquet")
    parquet.unlink()
    for log in base.rglob(".*.log.*"):
        log.rename(log.with_name(log.name.replace(first, second)))
    for path in (base / ".hoodie").glob(f"{first}.*"):
        path.unlink()
    for path in (base / ".hoodie" / f"{instant}.deltacommit" for instant in instants[1:]):
        text = path.read_text().replace(parquet.name, "")
        path.write_text(text.replace(first, second))
    return pyhudi.open_table(base, options=table.options)


def _appended(base: Path, stat: dict[str, Any]) -> dict[str, Any]:
    """What a stat says then; joins the files."""
    *before, own = stat["logFiles"]
    path = stat["path"].replace(own, before[-1])
    offset = (base / path).stat().st_size
    with (base / path).open("ab") as log:
        size = offset + log.write((base / stat["path"]).read_bytes())
    (base / stat["path"]).unlink()
    return {
        "path": path,
        "logFiles": before,
        "logVersion": stat["logVersion"] - 1,
        "logOffset": offset,
        "fileSizeInBytes": size,
    }
