"""Reads: the slices of a snapshot, a range or a difference, pruned, as tasks.

- `snapshot.py`: partitions from the metadata table or by listing, pruned by path and statistics;
  file groups and slices, pruned by indexes (`file_pruning.py`); one task per slice
  - Time travel is the same on a timeline cut at an instant (`timeline/time_travel.py` checks it).
- Time travel is the same on a timeline cut at an instant (`timeline/time_travel.py` guards it).
- `incremental.py` selects commits, active and archived, and takes its slices from their write
  stats.
- `cdc.py` selects commits, and `cdc_files.py` determines the changes of each written file: by
  change
  logs, or as the difference of the slice before and after. `diff.py` compares the slices of two
  snapshots. Both end in a `MatchTask`: Rust puts the side before into a hash table by key and
  streams the side after past it. Inserts and deletes are paired once more over all file groups
  (`moved_rows.py`), for records that changed partition.

Filters reach Parquet's row groups and rows. A base row is dropped early if it fails them and no
log record could still need it. pyarrow applies `where` once more to the merged batches.
"""
