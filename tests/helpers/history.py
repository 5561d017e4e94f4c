"""A random history that pyhudi and Apache Hudi write in turn on one table, beside a model.

After each step both readers give the model's rows, with the metadata table and data skipping and
without. PYHUDI_DIFFERENTIAL_STEPS steps are taken; the histories are the same each time, unless
PYHUDI_DIFFERENTIAL_SEED says otherwise.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

import pyhudi
from pyhudi import _native
from pyhudi.config.metadata_names import FILES
from pyhudi.metadata.table_writer import groups_by_partition
from pyhudi.storage.storage import Storage
from tests.helpers.differential import Model, Row, Setting, Step, Writer, in_order
from tests.helpers.metadata_table import metadata_table
from tests.helpers.oracle.client import HudiError, HudiOracle

if TYPE_CHECKING:
    from pyhudi.api.table import HudiTable
    from pyhudi.engine.protocol import Engine

STEPS = int(os.environ.get("PYHUDI_DIFFERENTIAL_STEPS", "3"))
SEED = os.environ.get("PYHUDI_DIFFERENTIAL_SEED", "")
SECONDS = 0 if STEPS > 20 else 600
"""A test's time limit, 0 for none."""
RELEASES = {6: "0.15.0", 8: "1.0.2", 9: "1.2.0"}
NUMBERS = ("int", "long")
FILTER = 40
"""Rows with a smaller `v`, or newest number column, are asked for where data skipping is tried."""
STATS_LOOKUP = "HoodieMetadataWriteUtils.getFilesToFetchColumnStats"
"""Where Hudi 1.2.0 dies while it replaces files of a merge-on-read table, its own ones too: tasks
get file slices of the metadata table whose base file has lost its transient `pathInfo`. pyhudi then
rolls the write back and does the step itself."""


class History:
    """A table, its model, and the two that write to it."""

    def __init__(
        self,
        base: Path,
        hudi: HudiOracle,
        setting: Setting,
        *,
        engine: Engine | None = None,
        given: Callable[[pa.Table], Any] = lambda rows: rows,
    ) -> None:
        """engine: what pyhudi writes with. given: the data as its verbs get them."""
        self._base = base
        self._hudi = hudi
        self._setting = setting
        self._engine = engine
        self._given = given
        self.model = Model(setting, random.Random(f"{setting}{SEED}"))
        self._options = _options(setting)

    def run(self) -> None:
        """Makes the table, and takes all steps."""
        self.begin()
        self.check("first rows")
        writers: tuple[Writer, Writer] = ("pyhudi", "hudi")
        for number in range(STEPS):
            step = self.take(writers[number % 2])
            self.check(f"step {number}: {step}")
        self.validate()

    def begin(self) -> None:
        """Makes the table: Apache Hudi the copy-on-write ones, pyhudi the others."""
        step = self.model.first()
        if self._setting.kind == "cow":
            self._by_hudi(step)
        else:
            self._create(step)
        self.model.apply(step)

    def take(self, writer: Writer) -> Step:
        """One random step."""
        step = self.model.step(writer)
        (self._by_pyhudi if writer == "pyhudi" else self._by_hudi)(step)
        self.model.apply(step)
        return step

    def check(self, said: str) -> None:
        """Compares what both read with the model."""
        expected = self.model.sorted()
        some = [row for row in expected if row["v"] < FILTER]
        for metadata in (True, False):
            ours = pyhudi.open_table(
                self._base, options={"hoodie.metadata.enable": str(metadata).lower()}
            )
            assert in_order(ours.scan().to_arrow().to_pylist()) == expected, (
                said,
                "pyhudi",
                metadata,
            )
            found = ours.scan(where=f"v < {FILTER}").to_arrow().to_pylist()
            assert in_order(found) == some, (said, "pyhudi, filtered", metadata)
            newest = [name for name, kind in self.model.columns.items() if kind in NUMBERS][-1]
            low = [row for row in expected if (row[newest] is not None and row[newest] < FILTER)]
            found = ours.scan(where=f"{newest} < {FILTER}").to_arrow().to_pylist()
            assert in_order(found) == low, (said, f"pyhudi, {newest} filtered", metadata)
        theirs = self._hudi.read(self._base, metadata=False)["rows"]
        assert in_order(theirs) == expected, (said, "Hudi")
        if self._setting.metadata:
            self._check_with_metadata(said, expected, some)

    def _check_with_metadata(self, said: str, expected: list[Row], some: list[Row]) -> None:
        theirs = self._hudi.read(self._base, metadata=True)["rows"]
        assert in_order(theirs) == expected, (said, "Hudi, metadata table")
        if self._setting.served and self._setting.kind == "mor" and self._setting.version == 8:
            return  # 1.0.2 leaves what waits for a compaction out of what it says of a partition.
        theirs = self._hudi.read(
            self._base, metadata=True, data_skipping=True, filter=f"v < {FILTER}"
        )["rows"]
        assert in_order(theirs) == some, (said, "Hudi, data skipping")

    def validate(self) -> None:
        """Hudi's own checks."""
        answer = self._hudi.validate(self._base)
        assert answer["ok"], answer["problems"]
        info = self._hudi.info(self._base)
        assert int(info["table_version"]) == self._setting.version

    def _create(self, step: Step) -> None:
        pyhudi.create_table(
            self._base,
            self.model.arrow(step.rows),
            key="id",
            partition_by="city",
            order_by="ts",
            type=self._setting.kind,
            version=self._setting.version,
            options={
                "hoodie.table.name": "t",
                "hoodie.datasource.write.partitionpath.urlencode": "true",
                "hoodie.metadata.enable": str(self._setting.metadata).lower(),
                **index_options(self._setting),
            },
        )

    def _by_pyhudi(self, step: Step) -> None:
        table: HudiTable = pyhudi.open_table(
            self._base, engine=self._engine, options=index_options(self._setting)
        )
        arrow = self.model.arrow(step.rows)
        rows = self._given(arrow)
        if step.action == "delete_keys":
            table.delete_keys(self._given(arrow.select(["id", "city"])))
        elif step.action == "delete":
            table.delete(pc.field("v") < step.below)
        elif step.action == "update":
            table.update(pc.field("v") < step.below, {"note": "'updated'"})
        elif step.action == "merge":
            table.merge(rows).when_matched_update_all().when_not_matched_insert_all().execute()
        elif step.action == "delete_partitions":
            table.delete_partitions(list(step.cities))
        elif step.action == "evolve":
            table.upsert(rows, schema_mode="merge")
        elif step.action == "alter":
            types = self.model.schema
            alter = table.alter()
            for name in step.columns:
                alter = alter.add_column(name, types.field(name).type)
            alter.execute()
        elif step.action == "partial":
            table.upsert(self._given(arrow.select(list(step.columns))), partial=True)
        else:
            getattr(table, step.action)(rows)

    def _by_hudi(self, step: Step) -> None:
        if step.action == "compaction":
            said = "run_compaction(op => 'scheduleandexecute')"
            self._hudi.call(self._base, said, conf=self.service_options())
            return
        if self._would_bring_files_back():
            self._by_pyhudi(step)
            return
        options = dict(self._options)
        if step.action == "delete_partitions":
            options["hoodie.datasource.write.partitions.to.delete"] = ",".join(step.cities)
        operation = _OPERATIONS.get(step.action, step.action)
        rows: Any = step.rows if step.action != "delete_partitions" else None
        try:
            self._hudi.write(
                self._base, rows=rows, schema=self.model.ddl, operation=operation, options=options
            )
        except HudiError as error:
            if STATS_LOOKUP not in error.message:
                raise
            self._by_pyhudi(step)

    def service_options(self) -> dict[str, str]:
        """What Hudi's services are told: without these options it drops a record index."""
        wanted = ("hoodie.metadata.", "hoodie.index.", "hoodie.embed.", "hoodie.write.")
        return {name: text for name, text in self._options.items() if name.startswith(wanted)}

    def _would_bring_files_back(self) -> bool:
        """Whether a key of `files` was deleted since the metadata table's last compaction.

        If the removed partition gets rows again, Hudi 1.2.0 lists the removed files as well, its
        own writes not excepted (`metadata/partition_types/files.py`).
        """
        concerned = self._setting.version >= 9 and self._setting.metadata
        return concerned and self._base.exists() and deletes_of_files(self._base) > 0


def deletes_of_files(base: Path) -> int:
    """Blocks of deleted keys in the newest slice of the `files` partition.

    The empty block with which a file group begins is none.
    """
    own = metadata_table(Storage(str(base)))
    (group,) = groups_by_partition(own, [FILES])[FILES]
    blocks = [_native.log_blocks(own.storage.native, log.path) for log in group.slice.logs]
    return sum(
        one["type"] == "DELETE_BLOCK" and one["header"]["INSTANT_TIME"].strip("0") != ""
        for of_log in blocks
        for one in of_log
    )


_OPERATIONS = {
    "evolve": "upsert",
    "delete_keys": "delete",
    "overwrite_partitions": "insert_overwrite",
    "delete_partitions": "delete_partition",
}


def index_options(setting: Setting) -> dict[str, str]:
    """What writers of both are told of the index."""
    options = {"hoodie.index.type": setting.index}
    if setting.index == "BUCKET":
        options["hoodie.bucket.index.num.buckets"] = "2"
    return options


def _options(setting: Setting) -> dict[str, str]:
    kind = "COPY_ON_WRITE" if setting.kind == "cow" else "MERGE_ON_READ"
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.table.type": kind,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.partitionpath.field": "city",
        "hoodie.datasource.write.partitionpath.urlencode": "true",
        "hoodie.metadata.enable": str(setting.metadata).lower(),
        "hoodie.embed.timeline.server": "false",
        "hoodie.clean.commits.retained": "4",
        "hoodie.keep.min.commits": "6",
        "hoodie.keep.max.commits": "8",
        "hoodie.compact.inline.max.delta.commits": "100",
        "hoodie.upsert.shuffle.parallelism": "1",
        "hoodie.insert.shuffle.parallelism": "1",
        "hoodie.bulkinsert.shuffle.parallelism": "1",
        "hoodie.delete.shuffle.parallelism": "1",
        "hoodie.simple.index.parallelism": "1",
        "hoodie.global.simple.index.parallelism": "1",
        "hoodie.bloom.index.parallelism": "1",
        "hoodie.index.bloom.num_entries": "64",
        "hoodie.write.auto.upgrade": "false",
        **index_options(setting),
    }
    if setting.index == "RECORD_INDEX":
        options["hoodie.metadata.record.index.enable"] = "true"
        options["hoodie.metadata.global.record.level.index.enable"] = "true"
    if setting.metadata:
        options["hoodie.metadata.index.column.stats.enable"] = "true"
    if setting.version == 6:
        payload = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
        options["hoodie.datasource.write.payload.class"] = payload
    return options
