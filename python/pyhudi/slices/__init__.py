"""File groups and slices of a table snapshot, and the tasks that read and write them.

A file has the schema of the instant in its name: files of a plan have the columns of the time of
the plan (`service_plans.py`). A task contains everything that a worker needs, and can be pickled.
Small tasks are packed (`task_packing.py`).
"""
