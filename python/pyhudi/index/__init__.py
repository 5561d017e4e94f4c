"""Indexes: the location of a record key.

`protocol.py` is what every index answers, `selection.py` which index a write uses, `tagging.py`
asks it. What no property records is detected from stored rows: how keys are encoded
(`key_encoding.py`), and how keys are hashed to buckets (`bucket_lookup.py`,
`query/bucket_pruning.py`).
"""
