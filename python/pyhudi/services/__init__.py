"""Table services: work that changes files and no rows.

A service is planned and executed for any table. The caller provides the policy and, for
compaction, how the file of one slice is written. Clustering has one task per group of slices: they
are read as a snapshot reads them, Rust sorts their rows (runs in local files above the memory
limit, curves over ranks in a sample) and writes files up to a maximum size. Under consistent
buckets are split and merged instead (`bucket_resize.py`); the new hashing metadata is valid
with the commit.

On a data table a compaction, log compaction or clustering is a plan that any writer executes
(decision 15). The next clean completes a pending clean. Archiving (`archiving.py`) decides which
instants are archived and why others stay. `admin/inline_services.py` decides what follows a commit,
`admin/health.py` what is worth doing, and `admin/maintain.py` does it.
"""
