"""A table as one snapshot: what readers, writers and services work on.

`table_snapshot` has `TableSnapshot`: storage, configuration, timeline, schema, clock, engine.
`locking` says how the writers of a table exclude each other, `participants` what takes part in
each of its commits.
"""
