"""All differences between table versions, selected once when a table is opened.

Other code uses the `TableVersion` and never compares version numbers. A new version is one more
object here. Source: Hudi 0.15.0 and 1.2.0 `HoodieTableVersion`.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Literal

from pyhudi.config.timeline_layout import LAYOUT_1, LAYOUT_2, TimelineLayout
from pyhudi.errors import UnsupportedTableFeature


@dataclass(frozen=True)
class TableVersion:
    """The rules of one `hoodie.table.version`."""

    code: int
    layout: TimelineLayout
    """Directory and file names of the timeline."""
    writable: bool
    """Whether pyhudi writes to tables of this version."""
    logs_named_by_base_instant: bool
    """A log file's name has its slice's base instant (else: the delta commit's own instant)."""
    blocks_need_commit_check: bool
    """One log file can have blocks of failed commits, so each block's instant must be looked up."""
    rollback_appends_command: bool
    """A rollback appends command blocks to log files (else: it deletes the log files)."""
    log_marker_type: Literal["APPEND", "CREATE"]
    """Marker type of a log file; with the wrong one, Hudi's rollback fails or misses the file."""
    partition_statistics_hold: bool
    """Partition statistics of merge-on-read tables are right, whichever Hudi release wrote them."""
    writes_positions: bool
    """Log blocks may record which rows of the base file they update; older readers fail on that."""
    hfile_blocks: bool
    """Hudi's readers accept HFile log blocks (Spark's since 1.0 fail: the rows are Avro
    records)."""
    commit_metadata_as_json: bool
    """Commit metadata is JSON text (else: an Avro container)."""
    writes_old_property_names: bool
    """New tables get the property names of Hudi 0.15, and no merge mode."""
    merge_inferred: bool
    """The merge mode follows from payload class, strategy id and ordering field."""
    payload_outranks_strategy: bool
    """When the merge mode is inferred, the payload class wins over the strategy id."""
    splits_bucket_keys: bool
    """The version's first release splits hash fields of record keys at commas only."""
    incremental_by_completion_time: bool
    """Ranges of incremental reads are completion times (else: requested times)."""
    lists_absent_partitions: bool
    """A commit that deletes partitions also lists those that the table does not have."""
    delete_partition_is_named: bool
    """The requested file of this commit names its operation (else: that of an overwrite)."""
    checkpoint_names_are_v2: bool
    """The checkpoints of Hudi's streamer have the names of its second format."""
    metadata_schema: str
    """Schema name of metadata records, that of the matching release."""
    virtual_log_keys: int
    """Maximum number of key columns with which Hudi's readers merge log files of rows without
    stored keys: 0.15 supports one, 1.0.2 fails on every such log file."""
    virtual_logs_of_any_type: bool
    """They merge them by keys of any type (else: 0.15 reads each key as a string)."""
    internal_schema_has_all_types: bool
    """Internal schemas record how decimals are stored, and millisecond and local times (else:
    not)."""
    has_index_definitions: bool
    """Index definitions record which columns have statistics (else: all columns that can)."""
    index_versions: bool
    """Index definitions have a version, statistics are of version 2, and the record index has a
    definition too."""
    column_stats_by_default: bool
    """A new metadata table has column statistics."""
    metadata_starts_with_data: bool
    """A metadata table's partitions begin at the data table's newest instant with a suffix (else:
    at zeros with a counter)."""
    metadata_services_have_suffixes: bool
    """Instants of the metadata table's services are its last delta commit's with a suffix (else:
    times of their own)."""
    clean_inflight_has_plan: bool
    """The inflight file of a clean repeats the plan (else: it is empty)."""
    confirms_hashing_metadata: bool
    """A file next to consistent-hashing metadata marks them as committed (0.15 uses base files, and
    fails on the next resize if this file exists)."""


def _layout_1_version(code: int, *, writable: bool) -> TableVersion:
    return TableVersion(
        code=code,
        layout=LAYOUT_1,
        writable=writable,
        logs_named_by_base_instant=True,
        blocks_need_commit_check=True,
        rollback_appends_command=True,
        log_marker_type="APPEND",
        partition_statistics_hold=False,
        writes_positions=False,
        hfile_blocks=True,
        commit_metadata_as_json=True,
        writes_old_property_names=True,
        merge_inferred=True,
        payload_outranks_strategy=True,
        splits_bucket_keys=True,
        incremental_by_completion_time=False,
        lists_absent_partitions=True,
        delete_partition_is_named=False,
        checkpoint_names_are_v2=False,
        metadata_schema="HoodieMetadataRecord_v6",
        virtual_log_keys=1,
        virtual_logs_of_any_type=False,
        internal_schema_has_all_types=False,
        has_index_definitions=False,
        index_versions=False,
        column_stats_by_default=False,
        metadata_starts_with_data=True,
        metadata_services_have_suffixes=True,
        clean_inflight_has_plan=True,
        confirms_hashing_metadata=False,
    )


def _layout_2_version(
    code: int,
    *,
    merge_inferred: bool,
    partition_statistics_hold: bool,
    delete_partition_is_named: bool,
    virtual_log_keys: int,
    internal_schema_has_all_types: bool,
    index_versions: bool,
) -> TableVersion:
    return TableVersion(
        code=code,
        layout=LAYOUT_2,
        writable=True,
        logs_named_by_base_instant=False,
        blocks_need_commit_check=False,
        rollback_appends_command=False,
        log_marker_type="CREATE",
        partition_statistics_hold=partition_statistics_hold,
        writes_positions=True,
        hfile_blocks=False,
        commit_metadata_as_json=False,
        writes_old_property_names=False,
        merge_inferred=merge_inferred,
        payload_outranks_strategy=False,
        splits_bucket_keys=False,
        incremental_by_completion_time=True,
        lists_absent_partitions=False,
        delete_partition_is_named=delete_partition_is_named,
        checkpoint_names_are_v2=True,
        metadata_schema=f"HoodieMetadataRecord_v{code}",
        virtual_log_keys=virtual_log_keys,
        virtual_logs_of_any_type=True,
        internal_schema_has_all_types=internal_schema_has_all_types,
        has_index_definitions=True,
        index_versions=index_versions,
        column_stats_by_default=True,
        metadata_starts_with_data=False,
        metadata_services_have_suffixes=False,
        clean_inflight_has_plan=False,
        confirms_hashing_metadata=True,
    )


_VERSIONS = {
    version.code: version
    for version in (
        _layout_1_version(4, writable=False),
        _layout_1_version(5, writable=False),
        _layout_1_version(6, writable=True),
        _layout_2_version(
            8,
            merge_inferred=True,
            partition_statistics_hold=False,
            delete_partition_is_named=False,
            virtual_log_keys=0,
            internal_schema_has_all_types=False,
            index_versions=False,
        ),
        _layout_2_version(
            9,
            merge_inferred=False,
            partition_statistics_hold=True,
            delete_partition_is_named=True,
            virtual_log_keys=sys.maxsize,
            internal_schema_has_all_types=True,
            index_versions=True,
        ),
    )
}


def table_version(code: int) -> TableVersion:
    """Return the rules of a table version. Raises `UnsupportedTableFeature` for an unknown one."""
    version = _VERSIONS.get(code)
    if version is None:
        supported = ", ".join(map(str, _VERSIONS))
        msg = f"hoodie.table.version is {code}; pyhudi supports {supported}"
        raise UnsupportedTableFeature(msg, hint=_version_hint(code))
    return version


def _version_hint(code: int) -> str:
    if code > max(_VERSIONS):
        return "A newer Hudi wrote this table: install a newer pyhudi."
    return "Upgrade the table with Apache Hudi first."
