"""The plan of a clustering as Hudi stores it, and its slices. Pure except for file sizes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from pyhudi.config.bounded_json import parse_json
from pyhudi.config.clustering_options import LAYOUT, RUN_PACKAGE, SORT_COLUMNS, Layout
from pyhudi.config.file_names import file_name_of, parse_base_name, parse_log_name
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import CorruptTable, UnsupportedTableFeature
from pyhudi.slices.compaction_plan import io_metrics, source_uri
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.hashing_metadata import ChildNode, file_id_of
from pyhudi.slices.service_plans import resolve_planned_slices
from pyhudi.slices.slice_builder import GroupKey
from pyhudi.storage.storage import Storage

Order: TypeAlias = tuple[tuple[str, ...], Layout | None]
"""The columns that rows are sorted by, and their layout, None if it is not stored."""

OPERATION = "CLUSTER"
_PLAN_VERSION = 1
_CHILDREN = "clustering.group.child.node"
"""Key in a group whose consistent-hashing buckets are split or merged."""
_NUMBER = "clustering.group.sequence.no"
_PARTITION = "clustering.group.partition"
_PREFIX = re.compile(r"[A-Za-z0-9-]+")
"""The characters of a file id, which becomes part of a file name."""
_RESIZING = (
    "ConsistentBucketClusteringExecutionStrategy",
    "JobConsistentHashingExecutionStrategy",
)
_SORTING = ("SortAndSizeExecutionStrategy", "SingleFileSortExecutionStrategy")
_COPYING = ("BinaryCopyExecutionStrategy", "StreamCopyClusteringExecutionStrategy")
"""Strategies that all write the same rows."""


@dataclass(frozen=True)
class PlannedGroup:
    """A group of file slices in a plan."""

    slices: tuple[FileSlice, ...]
    outputs: int
    """Maximum number of new file groups."""
    children: tuple[ChildNode, ...] = ()
    """For buckets that are split or merged: the changes of their hash nodes."""
    sequence_number: int = 0
    """The version of the hashing metadata with these nodes."""

    @property
    def partition(self) -> str:
        """Path of the partition of the rows."""
        return self.slices[0].partition


@dataclass(frozen=True)
class ClusteringPlan:
    """The plan of a pending clustering."""

    groups: tuple[PlannedGroup, ...]
    sort_columns: tuple[str, ...]
    layout: Layout | None
    """Only pyhudi's plans have them."""

    @property
    def inputs(self) -> dict[GroupKey, FileSlice]:
        """Every replaced slice, by its file group."""
        return {slice_.key: slice_ for group in self.groups for slice_ in group.slices}

    @property
    def resized(self) -> dict[str, tuple[PlannedGroup, ...]]:
        """The groups that split and merge buckets, by partition path."""
        groups: dict[str, tuple[PlannedGroup, ...]] = {}
        for group in self.groups:
            if group.children:
                groups[group.partition] = (*groups.get(group.partition, ()), group)
        return groups

    @property
    def replaced(self) -> dict[str, tuple[str, ...]]:
        """Replaced file ids, by partition path."""
        file_ids: dict[str, tuple[str, ...]] = {}
        for partition, file_id in self.inputs:
            file_ids[partition] = (*file_ids.get(partition, ()), file_id)
        return file_ids


def clustering_record(
    root: str,
    groups: Iterable[PlannedGroup],
    sort_columns: Sequence[str],
    layout: Layout | None,
    missing: Sequence[str] = (),
) -> Mapping[str, Any]:
    """Return the requested file's record (`HoodieRequestedReplaceMetadata`).

    root: the table's URI: Hudi's executors need absolute paths. missing: as in a compaction plan.
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
        "extraMetadata": _node_metadata(group) if group.children else None,
        "version": _PLAN_VERSION,
    }


def _node_metadata(group: PlannedGroup) -> dict[str, str]:
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
        _NUMBER: str(group.sequence_number),
    }


def read_plan(storage: Storage, config: TableConfig, record: Mapping[str, Any]) -> ClusteringPlan:
    """Parse the content of a requested file of any writer.

    Raises `CorruptTable` naming a missing file, `UnsupportedTableFeature` for a plan that requests
    more than joining rows.
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
        children, sequence_number = _nodes(extra) if _CHILDREN in extra else ((), 0)
        operations = map(_operation, group.get("slices") or ())
        slices = tuple(resolve_planned_slices(storage, config, operations))
        if slices:
            outputs = group.get("numOutputFileGroups") or 1
            groups.append(PlannedGroup(slices, outputs, children, sequence_number))
    return ClusteringPlan(tuple(groups), *order_of_plan(record))


def order_of_plan(record: Mapping[str, Any]) -> Order:
    """Return the sort order of a plan. Only pyhudi's plans have the layout."""
    plan = record.get("clusteringPlan") or {}
    columns = ((plan.get("strategy") or {}).get("strategyParams") or {}).get(SORT_COLUMNS) or ""
    layout = (plan.get("extraMetadata") or {}).get(LAYOUT, "").lower()
    return (
        tuple(name.strip() for name in columns.split(",") if name.strip()),
        layout if layout in ("linear", "zorder", "hilbert") else None,
    )


def new_buckets(record: Mapping[str, Any] | None) -> dict[GroupKey, frozenset[GroupKey]]:
    """Return the new buckets of a plan that splits or merges buckets, by old file group.

    Hudi's writers may write to both concurrently (`SparkConsistentBucketDuplicateUpdateStrategy`).
    The log file has the clustering's instant, so it becomes valid with the clustering.
    """
    buckets = {}
    for group in ((record or {}).get("clusteringPlan") or {}).get("inputGroups") or ():
        extra = group.get("extraMetadata") or {}
        prefixes = [child.prefix for child in _nodes(extra)[0]] if _CHILDREN in extra else []
        for slice_ in group.get("slices") or () if prefixes else ():
            partition = slice_["partitionPath"] or ""
            ids = frozenset((partition, file_id_of(prefix)) for prefix in prefixes if prefix)
            buckets[partition, slice_["fileId"]] = ids
    return buckets


def has_early_log_files(storage: Storage, record: Mapping[str, Any] | None) -> bool:
    """Return whether there are log files of buckets that a plan will create."""
    ids = frozenset().union(*new_buckets(record).values())
    return any(
        (partition, log.file_id) in ids
        for partition in {partition for partition, _ in ids}
        for file in storage.list_dir(partition)[1]
        if (log := parse_log_name(file.name)) is not None
    )


def _nodes(extra: Mapping[str, Any]) -> tuple[tuple[ChildNode, ...], int]:
    """Return the node changes of a group, and the version of the hashing metadata."""
    try:
        nodes = parse_json(extra[_CHILDREN], _CHILDREN, is_file=False)
        return tuple(map(_child, nodes)), int(extra[_NUMBER])
    except (CorruptTable, KeyError, TypeError, ValueError) as error:
        msg = f"a clustering plan has a {_CHILDREN} that is damaged: {error!r}"
        raise UnsupportedTableFeature(msg, hint="Execute it with Apache Hudi.") from error


def _child(node: Mapping[str, Any]) -> ChildNode:
    if node["tag"] == "DELETE":
        return ChildNode(int(node["value"]), None)
    if not (node["tag"] == "REPLACE" and _PREFIX.fullmatch(node["fileIdPrefix"])):
        raise ValueError(node)
    return ChildNode(int(node["value"]), node["fileIdPrefix"])


def _check_version(version: int | None) -> None:
    if version is not None and version > _PLAN_VERSION:
        msg = f"a clustering plan of version {version}"
        raise UnsupportedTableFeature(msg, hint="Execute it with Apache Hudi.")


def _check_class(name: str) -> None:
    if name and not name.endswith((*_SORTING, *_COPYING, *_RESIZING)):
        msg = f"hoodie.clustering.execution.strategy.class of a clustering plan is {name}"
        raise UnsupportedTableFeature(msg, hint="Execute it with Apache Hudi.")


def _operation(slice_: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a slice of a plan to the format of a compaction's plan."""
    data, logs = slice_.get("dataFilePath") or None, slice_.get("deltaFilePaths") or ()
    base = parse_base_name(file_name_of(data)) if data else None
    names = (parse_log_name(file_name_of(path)) for path in logs)
    instants = [log.instant for log in names if log is not None]
    return {
        "partitionPath": slice_.get("partitionPath"),
        "fileId": slice_["fileId"],
        "baseInstantTime": base.instant if base else min(instants, default=""),
        "dataFilePath": data,
        "deltaFilePaths": list(logs),
    }
