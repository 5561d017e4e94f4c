"""Random histories of tables that Hudi's SQL made with odd options, under services of both.

pyhudi and Hudi write in turn, and after each pair of writes one of them clusters, compacts, cleans,
archives, savepoints, rolls back or restores. There is no model of the rows: after each step both
readers are compared, read by read (`both_readers.py`). Tables that pyhudi does not write to are
Hudi's alone, and its refusal is asserted.

PYHUDI_ODD_ROUNDS rounds are taken, and of all tables where it is set; the histories are the same
each time, unless PYHUDI_ODD_SEED says otherwise.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyhudi.config.actions import COMMIT, COMPACTION, DELTA_COMMIT
from pyhudi.errors import UnsupportedTableFeature
from tests.helpers.aged import age_what_waits
from tests.helpers.both_readers import LATE, BothReaders, Row
from tests.helpers.oracle.client import HudiError, HudiOracle

if TYPE_CHECKING:
    from pyhudi.api.table import HudiTable

ROUNDS = int(os.environ.get("PYHUDI_ODD_ROUNDS", "2"))
SEED = os.environ.get("PYHUDI_ODD_SEED", "a")
EVERY = "PYHUDI_ODD_ROUNDS" in os.environ
"""Whether all tables are taken, and not a few."""
SECONDS = 0 if ROUNDS > 5 else 600
"""A test's time limit, 0 for none."""

CITIES = ("oslo", "ünï \u4e16", "a b+c", "50%")
NOTES = ("", "plain", "ünï\u4e16", 'quote"s "two", three', None)
COLUMNS = {"id": "string", "ts": "int", "v": "int", "note": "string", "city": "string"}

ARROW = {"string": pa.string(), "int": pa.int32(), "bigint": pa.int64()}
SELECTORS = "org.apache.hudi.client.bootstrap.selector."


@dataclass(frozen=True)
class OddTable:
    """A table that Hudi makes, and what its writers are told."""

    name: str
    version: int
    kind: Literal["cow", "mor"]
    columns: Mapping[str, str] = field(default_factory=lambda: COLUMNS)
    """Names and SQL types."""
    key: str = "id"
    cities: tuple[str, ...] = CITIES
    partition: str = "city"
    """Columns with commas between them, "" for none."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """Of the table, beside those that every table has."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Of Hudi's writes."""
    opened: Mapping[str, str] = field(default_factory=dict)
    """Of pyhudi's handle."""
    services: tuple[str, ...] = ("cluster", "clean", "archive", "savepoint", "rollback", "restore")
    """What Hudi may do besides; merge-on-read tables are compacted too."""
    hudis: tuple[str, ...] = ("upsert", "upsert", "insert", "merge", "update", "delete", "keys")
    """What Hudi may write."""
    late: bool = True
    """Whether rows come late."""
    bootstrapped: bool = False
    refused: str = ""
    """What pyhudi's refusal to write to it names."""

    def __str__(self) -> str:
        return f"v{self.version}-{self.kind}-{self.name}"

    @property
    def identifier(self) -> str:
        """A name that Spark's catalog takes."""
        return f"odd_{self}".replace("-", "_")

    @property
    def ddl(self) -> str:
        """Names and types, as Spark's."""
        return ", ".join(f"{name} {kind}" for name, kind in self.columns.items())


class OddHistory:
    """One table and what is done to it."""

    def __init__(self, folder: Path, hudi: HudiOracle, odd: OddTable) -> None:
        self._base = folder / "t"
        self._source = folder / "source"
        self._hudi = hudi
        self._odd = odd
        self._numbers = random.Random(f"{odd}{SEED}")
        self._readers = BothReaders(self._base, hudi, self._numbers, odd.opened)
        self._conf = {**_CONF, **odd.options}
        self._rows: list[Row] = []
        self._clock = 100
        self._made = 0
        self._savepoint: str | None = None
        self.services: list[str] = []
        """Those that were carried out."""

    def run(self) -> None:
        """Makes the table, and takes all rounds."""
        self._create()
        self._check("first rows")
        for number in range(ROUNDS):
            self._check(f"round {number}, pyhudi {self._write_by_pyhudi()}")
            self._check(f"round {number}, Hudi {self._write_by_hudi()}")
            self._check(f"round {number}, service {self._serve()}")
        compared = self._readers.compared
        assert compared["snapshot"] == 1 + 3 * ROUNDS
        assert compared["incremental"], compared

    def _check(self, said: str) -> None:
        self._rows = self._readers.check(said)

    # ------------------------------------------------------------ making it

    def _create(self) -> None:
        first = tuple(self._new_rows(12))
        if self._odd.bootstrapped:
            self._bootstrap(first)
            return
        odd = self._odd
        properties = {
            "type": odd.kind,
            "primaryKey": odd.key,
            "preCombineField": "ts",
            **odd.properties,
        }
        listed = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
        by = f" PARTITIONED BY ({odd.partition})" if odd.partition else ""
        name = odd.identifier
        made = f"CREATE TABLE {name} ({odd.ddl}) USING hudi{by} TBLPROPERTIES ({listed})"
        statements = [
            f"{made} LOCATION '{{base}}'",
            f"INSERT INTO {name} {self._values(first)}",
            f"DROP TABLE {name}",
        ]
        self._hudi.sql(self._base, statements, conf=self._conf)

    def _bootstrap(self, rows: tuple[Row, ...]) -> None:
        """The table of plain Parquet files that Spark wrote, in folders by city."""
        made = f"USING parquet PARTITIONED BY (city) LOCATION '{self._source}' AS"
        name = f"source_{self._odd.identifier}"
        statements = [f"CREATE TABLE {name} {made} {self._values(rows)}", f"DROP TABLE {name}"]
        self._hudi.sql(self._base, statements)
        self._hudi.write(
            self._base,
            rows=[],
            schema="",
            operation="bootstrap",
            options={
                **self._options(),
                "hoodie.bootstrap.base.path": str(self._source),
                "hoodie.bootstrap.parallelism": "1",
                "hoodie.bootstrap.mode.selector": SELECTORS + "MetadataOnlyBootstrapModeSelector",
            },
        )

    # ------------------------------------------------------------ steps

    def _write_by_pyhudi(self) -> str:
        """One write, or its refusal."""
        actions = ("upsert", "upsert", "insert", "delete_keys", "delete", "update", "merge")
        action = self._numbers.choice(actions)
        table = self._readers.open()
        if not self._odd.refused:
            self._take(table, action)
            return action
        with pytest.raises(UnsupportedTableFeature, match=self._odd.refused):
            self._take(table, action)
        return f"{action}, refused"

    def _take(self, table: HudiTable, action: str) -> None:
        low = self._numbers.choice([15, 30])
        if action == "delete":
            table.delete(pc.field("v") < low)
        elif action == "update":
            table.update(pc.field("v") < low, {"note": "'updated'"})
        elif action == "merge":
            rows = self._arrow(self._batch(late=False))
            table.merge(rows).when_matched_update_all().when_not_matched_insert_all().execute()
        elif action == "delete_keys":
            keys = [*self._odd.key.split(","), *filter(None, self._odd.partition.split(","))]
            table.delete_keys(self._arrow(self._chosen(2)).select(list(dict.fromkeys(keys))))
        elif action == "insert":
            table.insert(self._arrow(self._new_rows(3)))
        else:
            table.upsert(self._arrow(self._batch()))

    def _write_by_hudi(self) -> str:
        action = self._numbers.choice(self._odd.hudis)
        low = self._numbers.choice([15, 30])
        if action == "merge":
            self._sql(self._merge_statement())
        elif action == "update":
            self._sql(f"UPDATE {{table}} SET note = 'by SQL', ts = ts + 1 WHERE v < {low}")
        elif action == "delete":
            self._sql(f"DELETE FROM {{table}} WHERE v < {low}")
        elif action == "keys":
            self._put("delete", self._chosen(2))
        else:
            self._put(action, self._batch() if action == "upsert" else self._new_rows(3))
        return action

    def _sql(self, statement: str) -> None:
        self._hudi.sql(self._base, statement, conf=self._conf)

    def _put(self, operation: str, rows: list[Row]) -> None:
        """By the data source."""
        self._hudi.write(
            self._base,
            rows=rows,
            schema=self._odd.ddl,
            operation=operation,
            options=self._options(),
        )

    def _merge_statement(self) -> str:
        matched = " AND ".join(f"t.{name} = s.{name}" for name in self._odd.key.split(","))
        return (
            f"MERGE INTO {{table}} AS t USING ({self._values(self._batch(late=False))}) AS s "
            f"ON {matched} WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )

    # ------------------------------------------------------------ services

    def _serve(self) -> str:
        if self._odd.refused or self._numbers.random() < _BY_HUDI:
            return f"by Hudi, {self._serve_by_hudi()}"
        return f"by pyhudi, {self._serve_by_pyhudi()}"

    def _serve_by_pyhudi(self) -> str:
        """One service on what both have planned."""
        age_what_waits(self._base)
        table, choice = self._readers.open(), self._numbers.choice
        layouts: list[Literal["linear", "zorder", "hilbert"] | None]
        layouts = [None, "linear", "zorder", "hilbert"]
        layout = choice(layouts)
        services: dict[str, Callable[[], object]] = {
            "clean": lambda: table.clean(retain=choice([1, 2])),
            "archive": lambda: table.archive(min_commits=3, max_commits=4),
        }
        if "cluster" in self._odd.services:
            services["cluster"] = (
                table.cluster
                if self._odd.opened
                else lambda: table.cluster(sort_by=["v", "ts"], layout=layout)
            )
        if self._odd.kind == "mor":
            services["compact"] = table.compact
            services["plan_compaction"] = lambda: table.compact(execute=False)
            services["run_compaction"] = lambda: table.compact(schedule=False)
            services["log_compact"] = lambda: table.log_compact(min_log_files=2)
        name = choice([*services])
        self.services.append(name)
        return f"{name}: {services[name]()}"

    def _serve_by_hudi(self) -> str:
        """One service. Hudi refuses some, as a rollback of what a clean depends on."""
        services: dict[str, Callable[[], str | None]] = {
            "cluster": lambda: "run_clustering(op => 'scheduleandexecute', order => 'v')",
            "clean": lambda: "run_clean(retain_commits => 1)",
            "archive": lambda: (
                "archive_commits(min_commits => 3, max_commits => 4, retain_commits => 2)"
            ),
            "savepoint": self._savepointing,
            "rollback": self._rolling_back,
            "restore": self._restoring,
            "compact": lambda: "run_compaction(op => 'scheduleandexecute')",
            "plan_compaction": lambda: "run_compaction(op => 'schedule')",
            "run_compaction": lambda: "run_compaction(op => 'run')",
        }
        names = list(self._odd.services)
        if self._odd.kind == "mor":
            names += ["compact", "plan_compaction", "run_compaction"]
        name = self._numbers.choice(names)
        procedure = services[name]()
        if procedure is None:
            return f"{name}, not now"
        try:
            self._hudi.call(self._base, procedure, conf=self._conf)
        except HudiError as error:
            # What it has begun shows no heartbeat.
            age_what_waits(self._base)
            return f"{name}, refused: {error.causes[-1:]}"
        self.services.append(name)
        return name

    def _savepointing(self) -> str | None:
        last = self._last_commit()
        if last is None or self._savepoint is not None:
            return None
        self._savepoint = last
        return f"create_savepoint(commit_time => '{last}', user => 'odd', comments => 'kept')"

    def _restoring(self) -> str | None:
        at, self._savepoint = self._savepoint, None
        return None if at is None else f"rollback_to_savepoint(instant_time => '{at}')"

    def _rolling_back(self) -> str | None:
        last = self._last_commit()
        if last is None or last == self._savepoint:
            return None
        return f"rollback_to_instant(instant_time => '{last}')"

    def _last_commit(self) -> str | None:
        """The newest instant, where it is a write."""
        timeline = self._readers.open().state.timeline
        last = timeline.last_commit
        wanted = DELTA_COMMIT if self._odd.kind == "mor" else COMMIT
        if last is None or last.action != wanted or timeline.pending(COMPACTION):
            return None
        return last.requested

    # ------------------------------------------------------------ rows

    def _batch(self, *, late: bool = True) -> list[Row]:
        """Updates, one of them late, and new rows."""
        self._clock += 10
        batch = []
        for number, row in enumerate(self._chosen(4)):
            new = {**self._row(), **{name: row[name] for name in self._kept}}
            if late and self._odd.late and number == 0:
                new["ts"] = LATE
            batch.append(new)
        batch += self._new_rows(self._numbers.randint(1, 3))
        self._numbers.shuffle(batch)
        return batch

    @property
    def _kept(self) -> set[str]:
        return {*self._odd.key.split(","), *filter(None, self._odd.partition.split(","))}

    def _chosen(self, count: int) -> list[Row]:
        rows = sorted(self._rows, key=lambda row: str(row["id"]))
        chosen = self._numbers.sample(rows, min(count, len(rows)))
        return [{name: row[name] for name in self._odd.columns} for row in chosen]

    def _new_rows(self, count: int) -> list[Row]:
        return [self._row() for _ in range(count)]

    def _row(self) -> Row:
        self._made += 1
        odd = self._numbers.choice(["", "é", "/ x"])
        row: Row = {
            "id": f"k{self._made:04d}{odd}",
            "ts": self._clock,
            "v": self._numbers.randrange(100),
            "note": self._numbers.choice(NOTES),
            "city": self._numbers.choice(self._odd.cities),
            "day": f"2024-02-{27 + self._made % 3}",
            "Op": self._numbers.choice(["I", "U"]),
            "w": self._numbers.choice([None, 1, 2]),
        }
        return {name: row[name] for name in self._odd.columns}

    def _arrow(self, rows: list[Row]) -> pa.Table:
        kinds = [(name, ARROW[kind]) for name, kind in self._odd.columns.items()]
        return pa.Table.from_pylist(rows, pa.schema(kinds))

    def _values(self, rows: tuple[Row, ...] | list[Row]) -> str:
        """Rows as a SQL query."""
        names = ", ".join(self._odd.columns)
        values = ", ".join(f"({', '.join(map(_literal, row.values()))})" for row in rows)
        casts = ", ".join(
            f"CAST({name} AS {kind}) AS {name}" for name, kind in self._odd.columns.items()
        )
        return f"SELECT {casts} FROM VALUES {values} AS given({names})"

    def _options(self) -> dict[str, str]:
        """Of the data source, which has no catalog to ask."""
        odd = self._odd
        kind = "COPY_ON_WRITE" if odd.kind == "cow" else "MERGE_ON_READ"
        return {
            "hoodie.table.name": odd.identifier,
            "hoodie.datasource.write.table.type": kind,
            "hoodie.datasource.write.recordkey.field": odd.key,
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.partitionpath.field": odd.partition,
            "hoodie.datasource.write.hive_style_partitioning": "true",
            **{name: value for name, value in odd.properties.items() if name.startswith("hoodie.")},
            **self._conf,
        }


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    return str(value) if isinstance(value, int) else f"'{value}'"


_BY_HUDI = 0.6
"""How often a service is Hudi's."""
_CONF = {
    "hoodie.embed.timeline.server": "false",
    "hoodie.write.auto.upgrade": "false",
    "hoodie.clean.commits.retained": "2",
    "hoodie.keep.min.commits": "4",
    "hoodie.keep.max.commits": "5",
    "hoodie.compact.inline": "false",
    "hoodie.compact.inline.max.delta.commits": "1",
    "hoodie.metadata.compact.max.delta.commits": "50",
    "hoodie.upsert.shuffle.parallelism": "1",
    "hoodie.insert.shuffle.parallelism": "1",
    "hoodie.bulkinsert.shuffle.parallelism": "1",
    "hoodie.delete.shuffle.parallelism": "1",
    "hoodie.simple.index.parallelism": "1",
    "hoodie.bloom.index.parallelism": "1",
    "hoodie.index.bloom.num_entries": "64",
    "hoodie.merge.allow.duplicate.on.inserts": "false",
}
"""What all of Hudi's writes and services are told."""
