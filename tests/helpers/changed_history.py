"""A served history whose steps change the table itself, too, and whose writers die.

Indexes are built and dropped, columns are added and widened, the table gets another version, pyhudi
is killed in the middle of a write, and a completed instant is removed, as if its writer had died
just before it published. Without Apache Hudi pyhudi takes all steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import pyhudi
from pyhudi.config.actions import COMMIT_ACTIONS
from pyhudi.errors import HistoryUnavailable, UnsupportedTableFeature
from pyhudi.query.commit_range import IncrementalRange, select_commits
from pyhudi.query.incremental import COMMIT_TIME
from tests.helpers.aged import age
from tests.helpers.both_readers import LATE, NEWEST, Row
from tests.helpers.differential import Setting, Writer
from tests.helpers.history import RELEASES
from tests.helpers.killed_writer import kill_writer
from tests.helpers.oracle.client import HudiError, HudiOracle
from tests.helpers.rows import canonical_rows, difference, encode_table
from tests.helpers.served_history import ServedHistory
from tests.helpers.served_readers import ServedReaders

CHANGES = ("index", "index", "add_column", "widen", "change_version", "kill", "unpublish")
_CHANGING = 0.35
"""How often the table is changed in place of a service."""
_CHANGES_OF_A_WRITE = 24
_KILLED = ("upsert", "upsert", "insert", "delete_keys")
_SERVICES = ("COMPACT", "LOG_COMPACT", "CLUSTER")
_PAYLOAD = "hoodie.datasource.write.payload.class"
_DEFAULT_PAYLOAD = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
_LOCK = {
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider"
}
"""Hudi builds no index without one."""
_WRITE_VERSION = "hoodie.write.table.version"
_IN_WORDS = {6: "SIX", 8: "EIGHT", 9: "NINE"}
_INDEXES: Mapping[str, tuple[str, Mapping[str, Any], str]] = {
    "expr_index_by_lower": (
        "column_stats",
        {"columns": ["note"], "name": "by_lower", "function": "lower"},
        "CREATE INDEX by_lower ON {table} USING column_stats(note) OPTIONS (expr='lower')",
    ),
    "secondary_index_by_note": (
        "secondary_index",
        {"columns": ["note"], "name": "by_note"},
        "CREATE INDEX by_note ON {table} (note)",
    ),
    "bloom_filters": ("bloom_filters", {}, ""),
}
"""By partition of the metadata table: what pyhudi is asked for, and Apache Hudi, if it can."""


class ChangedHistory(ServedHistory):
    """A table that changes, and the two that write to it."""

    def __init__(self, base: Path, hudi: HudiOracle | None, setting: Setting) -> None:
        """hudi: None if pyhudi takes all steps."""
        super().__init__(base, hudi or HudiOracle(), setting)
        self._alone = hudi is None
        if hudi is None:
            self._readers: ServedReaders = OwnReaders(base, self._hudi, self._numbers, self._opened)
        self._set_version(setting.version)
        # Without a timeline server 1.2.0 fails to write under a secondary or an expression index;
        # with one 1.0.2 misreads names of partitions that are not ASCII.
        self._options["hoodie.embed.timeline.server"] = str(self._hudi.hudi == NEWEST).lower()

    # ------------------------------------------------------------ one or two writers

    def begin(self) -> None:
        """Makes the table."""
        if not self._alone:
            super().begin()
            return
        step = self.model.first()
        self._create(step)
        self.model.apply(step)

    def _by_hudi(self, step: Any) -> None:
        # Hudi removes no whole partitions under an expression index.
        fails = step.action == "delete_partitions" and self._has_expression_index()
        if self._alone or fails:
            self._by_pyhudi(step)
        else:
            super()._by_hudi(step)

    def check(self, said: str) -> None:
        """Compares what pyhudi reads, and Hudi if it is there, with the model."""
        if not self._alone:
            super().check(said)
            return
        wanted = canonical_rows(self.model.arrow(tuple(self.model.rows.values())))
        for metadata in ("true", "false"):
            table = pyhudi.open_table(self._base, options={"hoodie.metadata.enable": metadata})
            how = difference(canonical_rows(table.scan().to_arrow()), wanted)
            assert how is None, (said, metadata, how)

    def validate(self) -> None:
        """Hudi's own checks, and the findings of pyhudi's."""
        if not self._alone:
            super().validate()
        found = [one for one in self.services.open().check(deep=True) if one.severity == "error"]
        allowed = {"partition_statistics_too_narrow"} if self._hudi.hudi == "1.0.2" else set()
        assert {one.kind for one in found} <= allowed, found

    # ------------------------------------------------------------ changes

    def _write(self, writer: Writer) -> str:
        try:
            return super()._write(writer)
        except UnsupportedTableFeature as error:
            # pyhudi replaces no file groups under it.
            if "secondary_index" not in str(error):
                raise
            return f"refused by pyhudi: {error}"

    def _serve(self, writer: Writer, number: int) -> None:
        if self._alone or self._has_expression_index():
            # A clean of Hudi's writes the deletes of this index into `column_stats`, and no table
            # can be read by that then.
            writer = "pyhudi"
        if self._numbers.random() >= _CHANGING:
            super()._serve(writer, number)
            return
        name = self._numbers.choice(CHANGES)
        try:
            done = getattr(self, f"_{name}")(writer)
        except HudiError as error:
            done = f"refused by Hudi: {error.causes[-1:]}"
            self.services.refused.append(f"{name}: {error.causes[-1:]}")
        self.services.done[f"{writer} {name}"] += 1
        self._checked(f"step {number}, {writer} {name}: {done}")

    def _has_expression_index(self) -> bool:
        return "expr_index_by_lower" in self.services.open().config.metadata_partitions

    def _index(self, writer: Writer) -> str:
        table = self.services.open()
        if table.version == 6 and self._has_plans():
            return "not now"  # The metadata table is built again, which waits for plans.
        there = set(table.config.metadata_partitions)
        names = ["bloom_filters"] if writer == "pyhudi" else []
        if table.version >= 8:
            names.append("expr_index_by_lower")
            names += ["secondary_index_by_note"] if "record_index" in there else []
        if not names:
            return "not now"
        name = self._numbers.choice(names)
        kind, how, statement = _INDEXES[name]
        if name in there:
            if writer == "pyhudi":
                return f"dropped {table.drop_index(name)}"
            return self._sql(f"DROP INDEX {how['name']} ON {{table}}")
        if writer == "pyhudi":
            return f"built {table.create_index(kind, **how)}"
        return self._sql(statement)

    def _sql(self, statement: str) -> str:
        self._hudi.sql(self._base, statement, conf={**self.service_options(), **_LOCK})
        return statement

    def _add_column(self, writer: Writer) -> str:
        if len(self.model.columns) >= 9 or self._has_plans():
            return "not now"
        ddl = {"int": "int", "double": "double", "string": "string"}
        name = f"x{len(self.model.columns)}"
        kind = self._numbers.choice([*ddl])
        if writer == "hudi":
            said = self._sql(f"ALTER TABLE {{table}} ADD COLUMNS ({name} {ddl[kind]})")
        else:
            types = {"int": pa.int32(), "double": pa.float64(), "string": pa.string()}
            said = f"added {name}"
            self.services.open().alter().add_column(name, types[kind]).execute()
        self.model.columns[name] = kind
        for row in self.model.rows.values():
            row[name] = None
        return said

    def _widen(self, writer: Writer) -> str:
        if (
            self.model.columns["v"] == "long"
            or not self.model.can_widen
            or self.services.clusterings()
        ):
            return "not now"
        columns = dict(self.model.columns)
        self.model.columns["v"] = "long"
        try:
            return self._write_only(writer, "evolve")
        except HudiError:
            self.model.columns = columns
            raise

    def _change_version(self, writer: Writer) -> str:
        if self._hudi.hudi != NEWEST or self._has_plans():
            return "not now"
        old = self._setting.version
        new = self._numbers.choice([version for version in RELEASES if version != old])
        if writer == "pyhudi":
            table = self.services.open()
            try:
                said = str(table.upgrade(new) if new > old else table.downgrade(new))
            except UnsupportedTableFeature as error:
                # An expression index, or a schema history.
                return f"refused: {error}"
        else:
            procedure = "upgrade_table" if new > old else "downgrade_table"
            said = f"{procedure}(to_version => '{_IN_WORDS[new]}')"
            self._hudi.call(self._base, said, conf=self.service_options())
        self._set_version(new)
        return f"from {old} to {new}: {said}"

    def _set_version(self, version: int) -> None:
        self._setting = replace(self._setting, version=version)
        self.model.setting = replace(self.model.setting, version=version)
        self.services.setting = self._setting
        if self._hudi.hudi != RELEASES[6]:
            self._options[_WRITE_VERSION] = str(version)
        self._options.pop(_PAYLOAD, None)
        if version == 6:
            self._options[_PAYLOAD] = _DEFAULT_PAYLOAD

    def _has_plans(self) -> bool:
        services = self.services
        return bool(services.clusterings() or services.compactions() or services.log_compactions())

    # ------------------------------------------------------------ writers that die

    def _kill(self, _writer: Writer) -> str:
        if self.services.clusterings():
            return "not now"
        step = self.model.step("pyhudi", tuple({*_KILLED}))
        rows = self.model.arrow(step.rows)
        if step.action == "delete_keys":
            rows = rows.select(["id", "city"])
        change = self._numbers.randint(1, _CHANGES_OF_A_WRITE)
        before = self._written()
        died = kill_writer(self._base, step.action, rows, change, self._opened)
        committed = bool(self._written() - before)
        if committed:
            self.model.apply(step)
        assert died or committed or not step.rows, step
        return f"{step.action} died before change {change}: {died}, committed: {committed}"

    def _unpublish(self, writer: Writer) -> str:
        """Remove the completed instant of a new write."""
        if self._has_plans():
            return "not now"
        before = self._written()
        kept = dict(self.model.rows), list(self.model.gone)
        said = self._write_only(writer, "upsert")
        self.model.rows, self.model.gone = kept
        (new,) = self._written() - before
        folder = self._base / ".hoodie"
        for path in [*folder.glob(f"{new}*commit"), *folder.glob(f"timeline/{new}_*commit")]:
            path.unlink()
        age(self._base, new)
        return f"{said}, unpublished {new}"

    def _write_only(self, writer: Writer, action: str) -> str:
        step = self.model.step(writer, (action,))
        self._put(step, merging=False)
        self.model.apply(step)
        return f"{writer} {action} {[row['id'] for row in step.rows]}"

    def _written(self) -> set[str]:
        """Completed writes of rows."""
        timeline = self.services.open().state.timeline
        return {
            one.requested
            for one in timeline.filter_completed(*COMMIT_ACTIONS)
            if timeline.commit_metadata(one).operation_type not in _SERVICES
        }


class OwnReaders(ServedReaders):
    """pyhudi alone: a range is compared with the rows that its commits wrote and its end has."""

    def _snapshots(self, table: Any, said: str) -> list[Row]:
        rows = encode_table(table.scan().to_arrow())
        one, two = (table.scan(where=f"v {sign} 40").to_arrow() for sign in ("<", ">="))
        how = difference(
            [*canonical_rows(one), *canonical_rows(two)], canonical_rows(table.scan().to_arrow())
        )
        assert how is None, f"{said}, filtered: {how}"
        return rows

    def _theirs(self, *, meta: bool = True, **how: Any) -> list[Row] | None:
        return None

    def _range(self, table: Any) -> tuple[str, str]:
        times = sorted(one.completed or one.requested for one in table.state.timeline.commits)
        if table.version < 8:
            times = sorted(one.requested for one in table.state.timeline.commits)
        return self._numbers.choice(times[:-1]), times[-1]

    def _incremental(self, table: Any, start: str, end: str, said: str) -> None:
        chosen = select_commits(table.state, IncrementalRange(start, end))
        now = table.scan(meta_fields=True).to_arrow()
        wanted = now.filter(pc.is_in(now[COMMIT_TIME], pa.array(chosen.instants, pa.string())))
        try:
            scan = table.incremental(start, end, meta_fields=True, fallback_full_scan=False)
            ours = scan.to_arrow()
        except HistoryUnavailable:
            return
        on_time = [rows.filter(pc.not_equal(rows["ts"], LATE)) for rows in (ours, wanted)]
        # A range has the partition's path in the place of an encoded column.
        columns = [name for name in now.column_names if name != "city"]
        how = difference(*(canonical_rows(rows, columns) for rows in on_time))
        assert how is None, f"{said}: {how}"
        self.compared["incremental"] += 1
