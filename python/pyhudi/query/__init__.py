"""Reads: the slices of a snapshot, a range of commits or a difference, pruned, as tasks.

- `file_pruning.py`: partitions come from the metadata table or a listing, and are pruned by path
  and statistics; slices are pruned by indexes; each remaining slice is a task.
  Time travel is the same on a timeline cut at an instant (`timeline/time_travel.py` checks it).
- `incremental.py` selects commits, active and archived, and takes its slices from their write
  stats.
- `cdc.py` selects commits, and `cdc_files.py` determines the changes of each written file: by
  change logs, or as the difference of the slice before and after. `diff.py` compares the slices of
  two snapshots. Both end in a `MatchTask`: Rust puts the older side into a hash table by key and
  streams the newer side past it. Inserts and deletes are then paired over all file groups
  (`change_reader.py`), for records that changed partition.

Filters reach Parquet's row groups and rows. A base row that fails them is dropped early if no log
record can need it. pyarrow applies `where` again to the merged batches.
"""
