"""The plan of a clustering as Hudi stores it, and the slices that one names. Pure but for sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyhudi.config.clustering_options import LAYOUT, RUN_PACKAGE, SORT_COLUMNS, Layout
from pyhudi.config.file_names import parse_base_name, parse_log_name
from pyhudi.errors import UnsupportedTableFeature
from pyhudi.slices.compaction_plan import io_metrics
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.grouping import GroupKey
from pyhudi.slices.planned import planned_slices
from pyhudi.storage.storage import Storage

OPERATION = "CLUSTER"
_PLAN_VERSION = 1
_CHILDREN = "clustering.group.child.node"
"""Of a group whose consistent hashing bucket is split or merged."""
_SORTING = ("SortAndSizeExecutionStrategy", "SingleFileSortExecutionStrategy")
_COPYING = ("BinaryCopyExecutionStrategy", "StreamCopyClusteringExecutionStrategy")
"""Strategies of which all that counts is that the same rows are written."""


@dataclass(frozen=True)
class PlannedGroup:
    """File slices that a plan has together."""

    slices: tuple[FileSlice, ...]
    outputs: int
    """File groups that they become, at most."""

    @property
    def partition(self) -> str:
        """Path of the partition that their rows stay in."""
        return self.slices[0].partition


@dataclass(frozen=True)
class ClusteringPlan:
    """What a pending clustering is to do."""

    groups: tuple[PlannedGroup, ...]
    sort_columns: tuple[str, ...]
    layout: Layout | None
    """Only pyhudi's plans say it."""

    @property
    def inputs(self) -> dict[GroupKey, FileSlice]:
        """Every slice that goes, by its file group."""
        return {slice_.key: slice_ for group in self.groups for slice_ in group.slices}

    @property
    def replaced(self) -> dict[str, tuple[str, ...]]:
        """File ids that go, by partition path."""
        found: dict[str, tuple[str, ...]] = {}
        for partition, file_id in self.inputs:
            found[partition] = (*found.get(partition, ()), file_id)
        return found


def clustering_record(
    root: str,
    groups: Iterable[PlannedGroup],
    sort_columns: Sequence[str],
    layout: Layout | None,
    missing: Sequence[str] = (),
) -> Mapping[str, Any]:
    """The requested file's record (`HoodieRequestedReplaceMetadata`).

    root: the table's URI: Hudi's executors want absolute paths. missing: as a compaction plan's.
    """
    params = {SORT_COLUMNS: ",".join(sort_columns)} if sort_columns else {}
    return {
        "operationType": OPERATION,
        "extraMetadata": {},
        "version": _PLAN_VERSION,
        "clusteringPlan": {
            "inputGroups": [_group(root.rstrip("/"), group) for group in groups],
            "strategy": {
                "strategyClassName": f"{RUN_PACKAGE}SparkSortAndSizeExecutionStrategy",
                "strategyParams": params,
                "version": _PLAN_VERSION,
            },
            "extraMetadata": {LAYOUT: layout.upper()} if layout else {},
            "version": _PLAN_VERSION,
            "preserveHoodieMetadata": True,
            "missingSchedulePartitions": list(missing),
        },
    }


def _group(root: str, group: PlannedGroup) -> dict[str, Any]:
    metrics: dict[str, float] = {}
    for slice_ in group.slices:
        for name, value in io_metrics(slice_).items():
            metrics[name] = metrics.get(name, 0.0) + value
    return {
        "slices": [
            {
                "dataFilePath": f"{root}/{slice_.base.path}" if slice_.base else "",
                "deltaFilePaths": [f"{root}/{log.path}" for log in slice_.logs],
                "fileId": slice_.file_id,
                "partitionPath": slice_.partition,
                "bootstrapFilePath": "",
                "version": _PLAN_VERSION,
            }
            for slice_ in group.slices
        ],
        "metrics": metrics,
        "numOutputFileGroups": group.outputs,
        "extraMetadata": None,
        "version": _PLAN_VERSION,
    }


def read_plan(storage: Storage, record: Mapping[str, Any]) -> ClusteringPlan:
    """What a requested file says, whoever wrote it.

    Raises `CorruptTable` naming a file that is not there, `UnsupportedTableFeature` for a plan that
    asks for more than rows written together.
    """
    plan = record.get("clusteringPlan") or {}
    strategy = plan.get("strategy") or {}
    _check_version(plan.get("version"))
    _check_class(strategy.get("strategyClassName") or "")
    if plan.get("preserveHoodieMetadata") is False:
        msg = "a clustering plan has preserveHoodieMetadata=false: rows would get new commit times"
        raise UnsupportedTableFeature(msg, hint="Carry it out with Apache Hudi.")
    groups = []
    for group in plan.get("inputGroups") or ():
        if _CHILDREN in (group.get("extraMetadata") or {}):
            msg = f"a clustering plan has {_CHILDREN}: it splits or merges buckets"
            raise UnsupportedTableFeature(msg, hint="Carry it out with Apache Hudi.")
        slices = planned_slices(storage, map(_operation, group.get("slices") or ()))
        if slices:
            groups.append(PlannedGroup(tuple(slices), group.get("numOutputFileGroups") or 1))
    columns = (strategy.get("strategyParams") or {}).get(SORT_COLUMNS) or ""
    layout = (plan.get("extraMetadata") or {}).get(LAYOUT, "").lower()
    return ClusteringPlan(
        tuple(groups),
        tuple(name.strip() for name in columns.split(",") if name.strip()),
        layout if layout in ("linear", "zorder", "hilbert") else None,
    )


def _check_version(version: int | None) -> None:
    if version is not None and version > _PLAN_VERSION:
        msg = f"a clustering plan of version {version}"
        raise UnsupportedTableFeature(msg, hint="Carry it out with Apache Hudi.")


def _check_class(name: str) -> None:
    if name and not name.endswith((*_SORTING, *_COPYING)):
        msg = f"hoodie.clustering.execution.strategy.class of a clustering plan is {name}"
        raise UnsupportedTableFeature(msg, hint="Carry it out with Apache Hudi.")


def _operation(slice_: Mapping[str, Any]) -> dict[str, Any]:
    """A slice of a plan as a compaction's plan has it."""
    if slice_.get("bootstrapFilePath"):
        msg = "a clustering plan has bootstrapFilePath"
        raise UnsupportedTableFeature(msg, hint="Carry it out with Apache Hudi.")
    data, logs = slice_.get("dataFilePath") or None, slice_.get("deltaFilePaths") or ()
    base = parse_base_name(data.rsplit("/", 1)[-1]) if data else None
    names = (parse_log_name(path.rsplit("/", 1)[-1]) for path in logs)
    instants = [log.instant for log in names if log is not None]
    return {
        "partitionPath": slice_.get("partitionPath"),
        "fileId": slice_["fileId"],
        "baseInstantTime": base.instant if base else min(instants, default=""),
        "dataFilePath": data,
        "deltaFilePaths": list(logs),
    }
