"""Table services as steps of a history: those of pyhudi and those of Apache Hudi, chosen at random.

Retention and bounds are small, so that they find something to do. What one has planned the other
may carry out. Nothing here knows of rows.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyhudi
from pyhudi.config.actions import COMMIT, COMPACTION, LOG_COMPACTION
from pyhudi.config.retention_options import KEEP_COMMITS, KEEP_HOURS, KEEP_VERSIONS
from pyhudi.services.clustering import pending
from tests.helpers.aged import age_what_waits
from tests.helpers.differential import Setting, Writer
from tests.helpers.oracle.client import HudiError, HudiOracle

if TYPE_CHECKING:
    from pyhudi.api.table import HudiTable
    from pyhudi.timeline import Timeline

SERVICES = ("clean", "clean", "archive")
CLUSTERINGS = ("cluster", "plan_clustering", "run_clusterings")
COMPACTIONS = ("compact", "plan_compaction", "run_compactions")
LOG_COMPACTIONS = ("log_compact", "plan_log_compaction", "run_log_compactions")
TAKING = frozenset({"clean", "archive", "maintain"})
"""Services after which less of the past can be read."""

_RETAINED = {
    KEEP_COMMITS: "retain_commits",
    KEEP_VERSIONS: "file_versions_retained",
    KEEP_HOURS: "hours_retained",
}


class ServiceSteps:
    """The services of both on one table."""

    def __init__(
        self,
        base: Path,
        hudi: HudiOracle,
        setting: Setting,
        numbers: random.Random,
        options: Mapping[str, str],
        opened: Mapping[str, str],
    ) -> None:
        """options: of Hudi's services. opened: of pyhudi's handle."""
        self._base = base
        self._hudi = hudi
        self.setting = setting
        self._numbers = numbers
        self._options = {**options, "hoodie.compact.inline.max.delta.commits": "1"}
        self._opened = opened
        self.done: Counter[str] = Counter()
        """How often each was carried out, by who did it and its name."""
        self.refused: list[str] = []
        """What Hudi has refused to do, or died of."""

    def choose(self, writer: Writer) -> str:
        """A service of this writer that may have something to do."""
        names = [*SERVICES]
        if self.setting.index != "BUCKET":  # buckets are file groups
            names += CLUSTERINGS
        if self.setting.kind == "mor":
            names += COMPACTIONS
        if writer == "pyhudi":
            names += ["maintain"]
            names += LOG_COMPACTIONS if self.setting.kind == "mor" else ()
        planned = {
            "run_clusterings": self.clusterings(),
            "run_compactions": self.compactions(),
            "run_log_compactions": self.log_compactions(),
        }
        return self._numbers.choice([name for name in names if planned.get(name, True)])

    def take(self, writer: Writer, name: str) -> str:
        """Has a service done; what came of it."""
        if writer == "pyhudi":
            # What Hudi has begun and failed at shows no heartbeat.
            age_what_waits(self._base)
            done = self._ours()[name](self.open())
            said = str(getattr(done, "instants", ())) + str(getattr(done, "scheduled", ()))
            said += str(done.left)
        else:
            said = self._theirs()[name]()
            try:
                self._hudi.call(self._base, said, conf=self._options)
            except HudiError as error:
                self.refused.append(f"{name}: {error.causes[-1:] or error.message}")
                return f"refused, {self.refused[-1]}"
        self.done[f"{writer} {name}"] += 1
        return said

    def open(self) -> HudiTable:
        """The table as it is now."""
        return pyhudi.open_table(self._base, options=self._opened)

    # ------------------------------------------------------------ what is planned

    def clusterings(self) -> list[str]:
        """Clusterings that wait."""
        return [one.requested for one in pending(self._timeline)]

    def compactions(self) -> list[str]:
        """Compactions that wait."""
        return [one.requested for one in self._timeline.pending(COMPACTION)]

    def log_compactions(self) -> list[str]:
        """Log compactions that wait."""
        return [one.requested for one in self._timeline.pending(LOG_COMPACTION)]

    def hudi_may_merge(self) -> bool:
        """Whether Hudi can merge log files after a write.

        It fails at plans that a compaction has overtaken, and 1.x takes keys off a record index
        that log files deleted, wherever they are by then.
        """
        planned = self.log_compactions()
        commits = [one.requested for one in self._timeline.filter_completed(COMMIT)]
        overtaken = planned and commits and min(planned) < max(commits)
        merges = self.setting.kind == "mor" and self.setting.index != "RECORD_INDEX"
        return merges and not overtaken and not self.compactions()

    @property
    def _timeline(self) -> Timeline:
        return self.open().state.timeline

    # ------------------------------------------------------------ pyhudi's

    def _ours(self) -> dict[str, Callable[[HudiTable], Any]]:
        choice = self._numbers.choice
        few, most = choice([(2, 3), (3, 4)])
        policy = choice([KEEP_COMMITS, KEEP_COMMITS, KEEP_VERSIONS, KEEP_HOURS])
        retain = choice([1, 2, 3])
        strategy = choice(
            [None, "LogFileNumBasedCompactionStrategy", "BoundedIOCompactionStrategy"]
        )
        layout = choice([None, "linear", "zorder", "hilbert"])
        by = choice([["v"], ["v", "ts"], ["note", "v", "ts"]])
        return {
            "clean": lambda table: table.clean(policy=policy, retain=retain),
            "archive": lambda table: table.archive(min_commits=few, max_commits=most),
            "maintain": lambda table: table.maintain(),
            "cluster": lambda table: table.cluster(sort_by=by, layout=layout),
            "plan_clustering": lambda table: table.cluster(
                sort_by=by, layout=layout, execute=False
            ),
            "run_clusterings": lambda table: table.cluster(schedule=False),
            "compact": lambda table: table.compact(strategy=strategy),
            "plan_compaction": lambda table: table.compact(strategy=strategy, execute=False),
            "run_compactions": lambda table: table.compact(schedule=False),
            "log_compact": lambda table: table.log_compact(min_log_files=2),
            "plan_log_compaction": lambda table: table.log_compact(min_log_files=2, execute=False),
            "run_log_compactions": lambda table: table.log_compact(schedule=False),
        }

    # ------------------------------------------------------------ Hudi's

    def _theirs(self) -> dict[str, Callable[[], str]]:
        """The procedures."""
        choice = self._numbers.choice
        few, most = choice([(2, 3), (3, 4)])
        policy = choice([*_RETAINED])
        retain = choice([1, 2, 3])
        by = choice(["v", "v,ts", "note,v"])
        layout = choice(["LINEAR", "ZORDER", "HILBERT"])
        shape = f"order => '{by}', order_strategy => '{layout}'"
        archived = f"min_commits => {few}, max_commits => {most}, retain_commits => {few - 1}"
        return {
            "clean": lambda: (
                f"run_clean(clean_policy => '{policy}', {_RETAINED[policy]} => {retain})"
            ),
            "archive": lambda: f"archive_commits({archived}, enable_metadata => true)",
            "cluster": lambda: f"run_clustering(op => 'scheduleandexecute', {shape})",
            "plan_clustering": lambda: f"run_clustering(op => 'schedule', {shape})",
            "run_clusterings": lambda: "run_clustering(op => 'execute')",
            "compact": lambda: "run_compaction(op => 'scheduleandexecute')",
            "plan_compaction": lambda: "run_compaction(op => 'schedule')",
            "run_compactions": lambda: "run_compaction(op => 'run')",
        }
