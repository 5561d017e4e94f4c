"""The time by the clock that dates a storage's files.

The clocks of this machine, of another writer's machine and of the storage may differ by hours. Only
the storage's clock tells how old a file is.
"""

from __future__ import annotations

from pyhudi.clock import Clock
from pyhudi.config.timeline_layout import HEARTBEAT_FOLDER
from pyhudi.storage.storage import Storage


def storage_now_ms(storage: Storage, clock: Clock) -> int:
    """Return the time by the clock that dates files. Writes a file and deletes it.

    Returns this machine's time if another writer deletes the file.
    """
    probe = f"{HEARTBEAT_FOLDER}/probe-{clock.uuid()}"
    storage.put(probe, b"")
    written = storage.head(probe)
    storage.delete(probe)
    return clock.now_ms() if written is None else written.modified_ms


def is_older(storage: Storage, clock: Clock, modified_ms: int, age_ms: int) -> bool:
    """Return whether a file that was modified at `modified_ms` is older than `age_ms`.

    Both this machine's clock and the storage's must show that, since one of them may be wrong.
    """
    if clock.now_ms() - modified_ms <= age_ms:
        return False
    return storage_now_ms(storage, clock) - modified_ms > age_ms
