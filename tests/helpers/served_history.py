"""A random history with the table services of pyhudi and of Apache Hudi as steps of it.

No service changes a row. Before and after each one both readers give the same snapshot, the same
past and the same commits of a range, unless a clean took them; plans wait while writes of both go
on, and either side carries them out. `tests/helpers/history.py` has what the writes are.
"""

from __future__ import annotations

import copy
import random
import sys
from dataclasses import dataclass
from pathlib import Path

from pyhudi.errors import CommitConflict
from tests.helpers.both_readers import Row
from tests.helpers.differential import Setting, Step, Writer
from tests.helpers.history import SEED, STEPS, History, index_options
from tests.helpers.oracle.client import HudiError, HudiOracle
from tests.helpers.rows import difference
from tests.helpers.served_readers import ServedReaders
from tests.helpers.service_steps import TAKING, ServiceSteps

BESIDE_CLUSTERING = ("upsert", "insert", "bulk_insert", "delete_keys")
"""What is written while a clustering waits: Hudi's overwriting would go past it."""
BESIDE_PLANS = (*BESIDE_CLUSTERING, "delete", "update", "merge", "evolve")
"""What is written while another service waits: the rest, both refuse."""
REFUSED = ("HoodieClusteringUpdateException", "pending clustering")
"""What Hudi says to an update of rows that wait for a clustering."""
LOG_COMPACTION_INLINE = {
    "hoodie.log.compaction.enable": "true",
    "hoodie.log.compaction.inline": "true",
    "hoodie.log.compaction.blocks.threshold": "3",
}
COMPACT_METADATA = "hoodie.metadata.compact.max.delta.commits"


@dataclass(frozen=True)
class Saved:
    """A savepoint, and the model as it was then."""

    instant: str
    rows: dict[tuple[str, str | None], Row]
    columns: dict[str, str]
    gone: list[Row]


class ServedHistory(History):
    """A table, its model, and the two that write to it and keep it good."""

    def __init__(self, base: Path, hudi: HudiOracle, setting: Setting) -> None:
        super().__init__(base, hudi, setting)
        self._numbers = random.Random(f"services {setting}{SEED}")
        self._options[COMPACT_METADATA] = "3"
        self._opened = {**index_options(setting), COMPACT_METADATA: "3"}
        self.services = ServiceSteps(
            base, hudi, setting, self._numbers, self.service_options(), self._opened
        )
        self._readers = ServedReaders(base, hudi, self._numbers, self._opened)
        self._saved: Saved | None = None

    def run(self) -> None:
        """Makes the table, and takes all steps: writes and services of both in turn."""
        self.begin()
        self._checked("first rows")
        # 0.15.0 keeps no metadata table up that lacks an index it wants while a service waits.
        writers: tuple[Writer, Writer] = ("hudi", "pyhudi")
        for number in range(STEPS):
            self._checked(f"step {number}, {self._write(writers[number % 2])}")
            for _ in range(self._numbers.choice([1, 1, 2])):
                self._serve(self._numbers.choice(writers), number)
        self.validate()
        _say(f"{self.services.done}\n{self._readers.compared}\nrefused: {self.services.refused}")

    def _checked(self, said: str) -> None:
        _say(said)
        self.check(said)
        self._readers.check(said)

    # ------------------------------------------------------------ writes

    def _write(self, writer: Writer) -> str:
        """A random write; or its refusal, where it would change what waits for a clustering."""
        services = self.services
        waits = services.clusterings()
        only: tuple[str, ...] = BESIDE_CLUSTERING if waits else ()
        if services.compactions() or services.log_compactions():
            only = only or BESIDE_PLANS
        step = self.model.step(writer, only)
        try:
            self._put(step, merging=services.hudi_may_merge() and self._numbers.random() < _MERGING)
        except CommitConflict:
            assert waits, step
            return f"refused by pyhudi: {_told(step)}"
        except HudiError as error:
            if not waits or not any(one in error.message for one in REFUSED):
                raise
            return f"refused by Hudi: {_told(step)}"
        self.model.apply(step)
        return _told(step)

    def _put(self, step: Step, *, merging: bool) -> None:
        """merging: Hudi is to merge log files after its write, by plans of pyhudi too."""
        if step.writer == "pyhudi":
            self._by_pyhudi(step)
            return
        options = self._options
        self._options = {**options, **(LOG_COMPACTION_INLINE if merging else {})}
        try:
            self._by_hudi(step)
        finally:
            self._options = options

    # ------------------------------------------------------------ services

    def _serve(self, writer: Writer, number: int) -> None:
        if self._numbers.random() < _SAVING:
            self._checked(f"step {number}, {writer} {self._save_or_restore(writer)}")
            return
        name = self.services.choose(writer)
        incremental_range = self._readers.incremental_range()
        before, findings = self._readers.probe(incremental_range), self._findings()
        said = f"step {number}, {writer} {name}: {self.services.take(writer, name)}"
        self._checked(said)
        after = self._readers.probe(incremental_range)
        for asked, rows in before.items():
            got = after[asked]
            if rows is None or (got is None and (name in TAKING or asked.startswith("their"))):
                continue
            if asked == "their then" and after["then"] is None:
                continue  # It shows what a clean has left.
            if asked == "their since" and self._readers.is_odd(incremental_range):
                continue
            assert got is not None, (said, asked, incremental_range)
            how = difference(got.elements(), rows.elements())
            assert how is None, (said, asked, incremental_range, how)
        new = self._findings() - findings
        assert not new, (said, new)

    def _findings(self) -> set[str]:
        """Kinds of findings; some are there because of what Hudi's writers leave out."""
        found = self.services.open().check(deep=True).findings
        return {finding.kind for finding in found}

    def _save_or_restore(self, writer: Writer) -> str:
        saved, table = self._saved, self.services.open()
        if saved is None:
            last = table.state.timeline.last_commit
            assert last is not None
            instant = last.requested
            if writer == "pyhudi":
                # The last that was completed.
                instant = table.savepoint("of the history")
            else:
                call = f"create_savepoint(commit_time => '{last.requested}', user => 'u')"
                self._hudi.call(self._base, call, conf=self.service_options())
            model = copy.deepcopy((self.model.rows, self.model.columns, self.model.gone))
            self._saved = Saved(instant, *model)
            return f"savepoint {instant}"
        self._saved = None
        if self._numbers.random() < _FORGETTING:
            table.delete_savepoint(saved.instant)
            return f"savepoint {saved.instant} taken away"
        if writer == "pyhudi" or not self._hudi_can_restore(saved.instant):
            table.restore(saved.instant)
            by = "by pyhudi"
        else:
            call = f"rollback_to_savepoint(instant_time => '{saved.instant}')"
            self._hudi.call(self._base, call, conf=self.service_options())
            by = "by Hudi"
        self.services.open().delete_savepoint(saved.instant)
        self.model.rows, self.model.columns, self.model.gone = saved.rows, saved.columns, saved.gone
        return f"restored to {saved.instant} {by}"

    def _hudi_can_restore(self, instant: str) -> bool:
        """Whether nothing is planned, and the metadata table was not compacted since."""
        services = self.services
        if services.clusterings() or services.compactions() or services.log_compactions():
            return False
        folder = self._base / ".hoodie" / "metadata" / ".hoodie"
        names = [path.name for path in folder.rglob("*.commit")]
        return all(name[: len(instant)] < instant for name in names)


_MERGING = 0.5
_SAVING = 0.1
"""How often a savepoint is made, or gone back to, in place of a service."""
_FORGETTING = 0.3


def _told(step: Step) -> str:
    what = (step.cities, step.below, step.columns)
    keys = " ".join(str(row["id"]) for row in step.rows)
    return f"{step.writer} {step.action} {[one for one in what if one]} {keys}"


def _say(text: str) -> None:
    """Shown with what fails, and by `pytest -s`."""
    sys.stdout.write(f"{text}\n")
