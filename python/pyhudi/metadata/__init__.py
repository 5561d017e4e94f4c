"""The metadata table: a Hudi table of HFiles with listings, statistics and indexes.

Reading: its timeline and file groups are found by the same code as those of any table; the Rust
crate `metadata` merges its records by key. Statistics of the whole table and the record index
describe the current snapshot only: a stale handle and time travel do not use them. A slice is
pruned only if one condition excludes every file of it (`pruning_context.py`).

Writing: the metadata table is a commit participant (`commit_participant.py`). The last step but
one of a commit is a delta commit of the same instant there. Each partition type is one file in
`partition_types/` and answers one protocol: when a table has it, why it is not supported, its
initial records, its changes by a commit, how a scan uses it. Records come from the written files:
tasks read footers, rows and keys and return record rows, which are grouped by the file group of
their key and written as HFile blocks (`rust/metadata/src/write/`). No key passes through the
driver. Deleted and replaced records of the record index are found by merging the slices before and
after (`record_locations.py`, `changed_slices.py`). The rollback of a commit rolls back its delta
commit.

Building partitions: tasks over all files or rows (`initial_records.py`), one delta commit each
(`initialize.py`); the table's properties name them as the last act. A rebuild or a change of the
table's version first records in a property what it removes (`pending_operation.py`), so that the
next writer can complete it. An index can be built while writers run (`write/async_indexing.py`).

Services: cleaning, compaction (records of a file group merged into an HFile; packed blocks without
changed keys are copied) and archiving follow the commit (`services.py`).
"""
