"""The plan of a clustering as Hudi stores it, and the slices that one names. Pure but for sizes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from pyhudi.config.bounded_json import parse_json
from pyhudi.config.clustering_options import LAYOUT, RUN_PACKAGE, SORT_COLUMNS, Layout
from pyhudi.config.file_names import parse_base_name, parse_log_name
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import CorruptTable, UnsupportedTableFeature
from pyhudi.slices.compaction_plan import io_metrics, source_uri
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.hashing_metadata import Child, file_id_of
from pyhudi.slices.service_plans import resolve_planned_slices
from pyhudi.slices.slice_builder import GroupKey
from pyhudi.storage.storage import Storage

Order: TypeAlias = tuple[tuple[str, ...], Layout | None]
"""The columns that rows are sorted by, and their layout, None where nobody says."""

OPERATION = "CLUSTER"
_PLAN_VERSION = 1
_CHILDREN = "clustering.group.child.node"
"""Of a group whose consistent-hashing buckets are split or merged."""
_NUMBER = "clustering.group.sequence.no"
_PARTITION = "clustering.group.partition"
_PREFIX = re.compile(r"[A-Za-z0-9-]+")
"""Of a file id, which is to be a file's name."""
_RESIZING = (
    "ConsistentBucketClusteringExecutionStrategy",
    "JobConsistentHashingExecutionStrategy",
)
_SORTING = ("SortAndSizeExecutionStrategy", "SingleFileSortExecutionStrategy")
_COPYING = ("BinaryCopyExecutionStrategy", "StreamCopyClusteringExecutionStrategy")
"""Strategies of which all that counts is that the same rows are written."""


@dataclass(frozen=True)
class PlannedGroup:
    """File slices that a plan has together."""

    slices: tuple[FileSlice, ...]
    outputs: int
    """File groups that they become, at most."""
    children: tuple[Child, ...] = ()
    """Of buckets that are split or merged: what becomes of their nodes."""
    ring: int = 0
    """The number of the ring that these nodes are of."""

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
    def resized(self) -> dict[str, tuple[PlannedGroup, ...]]:
        """The groups that split and merge buckets, by partition path."""
        found: dict[str, tuple[PlannedGroup, ...]] = {}
        for group in self.groups:
            if group.children:
                found[group.partition] = (*found.get(group.partition, ()), group)
        return found

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
    groups = list(groups)
    resizes = any(group.children for group in groups)
    strategy = "ConsistentBucketClustering" if resizes else "SortAndSize"
    params = {SORT_COLUMNS: ",".join(sort_columns)} if sort_columns else {}
    return {
        "operationType": OPERATION,
        "extraMetadata": {},
        "version": _PLAN_VERSION,
        "clusteringPlan": {
            "inputGroups": [_group(root.rstrip("/"), group) for group in groups],
            "strategy": {
                "strategyClassName": f"{RUN_PACKAGE}Spark{strategy}ExecutionStrategy",
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
                "bootstrapFilePath": source_uri(slice_) or "",
                "version": _PLAN_VERSION,
            }
            for slice_ in group.slices
        ],
        "metrics": metrics,
        "numOutputFileGroups": group.outputs,
        "extraMetadata": _of_nodes(group) if group.children else None,
        "version": _PLAN_VERSION,
    }


def _of_nodes(group: PlannedGroup) -> dict[str, str]:
    nodes = [
        {
            "value": child.value,
            "fileIdPrefix": child.prefix,
            "tag": "DELETE" if child.prefix is None else "REPLACE",
        }
        for child in group.children
    ]
    return {
        _PARTITION: group.partition,
        _CHILDREN: json.dumps(nodes, indent=2),
        _NUMBER: str(group.ring),
    }


def read_plan(storage: Storage, config: TableConfig, record: Mapping[str, Any]) -> ClusteringPlan:
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
        raise UnsupportedTableFeature(msg, hint="Execute it with Apache Hudi.")
    groups = []
    for group in plan.get("inputGroups") or ():
        extra = group.get("extraMetadata") or {}
        children, ring = _nodes(extra) if _CHILDREN in extra else ((), 0)
        operations = map(_operation, group.get("slices") or ())
        slices = tuple(resolve_planned_slices(storage, config, operations))
        if slices:
            outputs = group.get("numOutputFileGroups") or 1
            groups.append(PlannedGroup(slices, outputs, children, ring))
    return ClusteringPlan(tuple(groups), *order_of_plan(record))


def order_of_plan(record: Mapping[str, Any]) -> Order:
    """How a plan sorts. Only pyhudi's say the layout."""
    plan = record.get("clusteringPlan") or {}
    columns = ((plan.get("strategy") or {}).get("strategyParams") or {}).get(SORT_COLUMNS) or ""
    layout = (plan.get("extraMetadata") or {}).get(LAYOUT, "").lower()
    return (
        tuple(name.strip() for name in columns.split(",") if name.strip()),
        layout if layout in ("linear", "zorder", "hilbert") else None,
    )


def new_buckets(record: Mapping[str, Any] | None) -> dict[GroupKey, frozenset[GroupKey]]:
    """By file group that a plan splits or merges those that it becomes; none of another plan.

    Hudi's writers may write to both meanwhile (`SparkConsistentBucketDuplicateUpdateStrategy`).
    Such a log file bears the clustering's instant, so it counts with the clustering.
    """
    found = {}
    for group in ((record or {}).get("clusteringPlan") or {}).get("inputGroups") or ():
        extra = group.get("extraMetadata") or {}
        prefixes = [child.prefix for child in _nodes(extra)[0]] if _CHILDREN in extra else []
        for slice_ in group.get("slices") or () if prefixes else ():
            partition = slice_["partitionPath"] or ""
            ids = frozenset((partition, file_id_of(prefix)) for prefix in prefixes if prefix)
            found[partition, slice_["fileId"]] = ids
    return found


def has_early_log_files(storage: Storage, record: Mapping[str, Any] | None) -> bool:
    """Whether there are log files of buckets that a plan is to make."""
    ids = frozenset().union(*new_buckets(record).values())
    return any(
        (partition, log.file_id) in ids
        for partition in {partition for partition, _ in ids}
        for file in storage.list_dir(partition)[1]
        if (log := parse_log_name(file.name)) is not None
    )


def _nodes(extra: Mapping[str, Any]) -> tuple[tuple[Child, ...], int]:
    """What a group says of nodes, and of which ring."""
    try:
        nodes = parse_json(extra[_CHILDREN], _CHILDREN, is_file=False)
        return tuple(map(_child, nodes)), int(extra[_NUMBER])
    except (CorruptTable, KeyError, TypeError, ValueError) as error:
        msg = f"a clustering plan has a {_CHILDREN} that is damaged: {error!r}"
        raise UnsupportedTableFeature(msg, hint="Execute it with Apache Hudi.") from error


def _child(node: Mapping[str, Any]) -> Child:
    if node["tag"] == "DELETE":
        return Child(int(node["value"]), None)
    if not (node["tag"] == "REPLACE" and _PREFIX.fullmatch(node["fileIdPrefix"])):
        raise ValueError(node)
    return Child(int(node["value"]), node["fileIdPrefix"])


def _check_version(version: int | None) -> None:
    if version is not None and version > _PLAN_VERSION:
        msg = f"a clustering plan of version {version}"
        raise UnsupportedTableFeature(msg, hint="Execute it with Apache Hudi.")


def _check_class(name: str) -> None:
    if name and not name.endswith((*_SORTING, *_COPYING, *_RESIZING)):
        msg = f"hoodie.clustering.execution.strategy.class of a clustering plan is {name}"
        raise UnsupportedTableFeature(msg, hint="Execute it with Apache Hudi.")


def _operation(slice_: Mapping[str, Any]) -> dict[str, Any]:
    """A slice of a plan as a compaction's plan has it."""
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
