"""Paths below one location, on any store.

`rust/store` moves the bytes. Timeline files are created only if they are absent; the lock is
replaced at the version that was read; nothing is appended or renamed. A step prefetches what it
will read, and small tasks run in parallel (decision 22). `lru_cache.py` keeps the content of
completed commits, whose names contain their completion time. `properties_file.py` reads and
replaces `hoodie.properties`.
"""
