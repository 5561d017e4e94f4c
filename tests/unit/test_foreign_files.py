"""Files that Hudi did not write but a table lists: an error, never skipped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.clock import SystemClock
from pyhudi.errors import UnsupportedTableFeature
from pyhudi.metadata.partition_types import files
from tests.helpers.table_builder import TableBuilder
from tests.unit.test_savepoints import timeline_of

TABLE = TableBuilder({"id": (pa.string(), lambda key: key), "v": (pa.int64(), 1)})
ENABLED = {"hoodie.metadata.enable": "true"}
WITHOUT = {"hoodie.metadata.enable": "false"}
FILE = "part-0.parquet"

VERBS: list[Callable[[pyhudi.HudiTable], object]] = [
    lambda table: table.scan().count(),
    lambda table: table.insert(TABLE.rows("c")),
    lambda table: table.upsert(TABLE.rows("a")),
    lambda table: table.check(),
]


def in_metadata_table(base: Path, version: int) -> None:
    """A table whose one file is another writer's, as the metadata table has it."""

    def external(path: str) -> str:
        instant = path.rsplit("_", 1)[1].removesuffix(".parquet")
        return f"{FILE}_{instant}_hudiext"

    table = TABLE.make(base, version=version, options=ENABLED)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "file_name_of", external)
        table.insert(TABLE.rows("ab"))
    (written,) = base.glob("*.parquet")
    written.rename(base / FILE)


def in_commit(base: Path) -> None:
    """The same, as its commit has it."""
    timeline, config = timeline_of(base), pyhudi.open_table(base).config
    (commit,) = timeline.commits
    metadata = timeline.commit_metadata(commit)
    stats = {
        partition: tuple(replace(s, path=f"{FILE}_{commit.requested}_hudiext") for s in stats)
        for partition, stats in metadata.partition_to_write_stats.items()
    }
    metadata = replace(metadata, partition_to_write_stats=stats)
    content = metadata.encode(config.version, commit.action, SystemClock())
    (base / timeline.path(commit)).write_bytes(content)


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("verb", [VERBS[0], VERBS[-1]], ids=["scan", "check"])
def test_metadata_table_with_foreign_path_raises(
    tmp_path: Path, verb: Callable[[pyhudi.HudiTable], object], version: int
) -> None:
    in_metadata_table(tmp_path, version)
    with pytest.raises(UnsupportedTableFeature, match="_hudiext"):
        verb(pyhudi.open_table(tmp_path))


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("verb", VERBS, ids=["scan", "insert", "upsert", "check"])
def test_commit_with_foreign_path_raises(
    tmp_path: Path, verb: Callable[[pyhudi.HudiTable], object], version: int
) -> None:
    """The listing has the file's own name, which is none of Hudi's."""
    in_metadata_table(tmp_path, version)
    in_commit(tmp_path)
    for options in ({}, WITHOUT):
        with pytest.raises(UnsupportedTableFeature, match="_hudiext"):
            verb(pyhudi.open_table(tmp_path, options=options))
