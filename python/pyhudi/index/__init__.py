"""Indexes find the location of a record key.

`protocol.py` defines what every index can do, `selection.py` chooses the index of a write,
`tagging.py` calls it. What no property records is detected from stored rows: how keys are encoded
(`key_encoding_detection.py`), and how keys are hashed to buckets (`bucket_lookup.py`,
`query/bucket_pruning.py`).
"""
