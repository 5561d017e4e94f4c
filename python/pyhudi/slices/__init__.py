"""A table snapshot, its file groups and slices, and the tasks that read and write them.

`table_snapshot.py` defines `TableSnapshot`, on which all reads and changes of a table work. A file
belongs to the version of the instant in its name: a plan's files have the columns of the plan's
time (`service_plans.py`). A task carries everything that a worker needs, and pickles; small tasks
are packed (`task_packing.py`).
"""
