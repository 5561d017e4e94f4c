"""Ingestion: reads a source from its checkpoint on, and writes rows and checkpoint as one commit.

`checkpoint` finds the newest checkpoint of a table. A source (`source`) returns the next batch
after it. `ingest` writes batches until the source has no more. The package knows the public API of
tables, not their files.
"""
