"""The write operations: rows in, tagged with their file groups, written to files.

The path of the data: input (`input_rows.py`, any row source as Arrow batches) -> the table's
schema, widened if asked (`schema/evolution.py`) -> record key and partition path (Rust) ->
duplicates combined by the merge rules (`slices/combine.py`) -> rows tagged by the table's index
(`index/tagging.py`) -> one task per file (`file_assignment.py`) -> base or log files on the engine
(`slices/write_base.py`, `slices/write_log.py`) -> commit (`txn/transaction.py`). `upsert.py`,
`merge.py`, `overwrite.py`, `update_delete.py` and `alter.py` hold the operations, `execute.py`
the commit that they share.

- An operation does not know where its rows are (`row_protocols.py`, decision 12): in memory, in
  local files or in a Spark DataFrame. Each of them assigns rows its way; a plan sees only the
  counts.
- Data above a quarter of the memory limit spill to local files (`engine/spill.py`),
  first by key hash, then by file group and partition (`spilled_rows.py`), from where tasks stream
  them.
- Copy-on-write rewrites a base file by merging the rows into it with the reader that merges logs.
  Row groups without a matching row are copied (decision 23). Merge-on-read appends one log file per
  file group: data blocks, then a delete block. Inserts go to base files, as Hudi's writers do with
  an index that does not read logs. A file is rewritten for inserts only in proportion to them
  (decision 17).
- `update` and `delete` find rows as a scan does and change them in their file group; new values
  are computed where they are written (`query/dml_rows.py`).
- Overwriting and deleting partitions are replace commits. Under a bucket index the buckets
  continue under new file ids (`index/replaced_buckets.py`).
- A directory becomes a partition with its first file group, never inside another partition
  (`slices/nested_partitions.py`).
- A conflict aborts the operation; `conflict_retries.py` runs it again from its beginning, the last
  time within one critical section.
"""
