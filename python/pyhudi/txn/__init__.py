"""The commit protocol: an instant from requested to completed.

Every instant, of any action and of either table, is a `PendingInstant` (`pending_instant.py`).
Completing it checks that it is still inflight.

A write (`transaction.py`):

1. The next writer rolls back what failed writers left (`recovery.py`). The write is planned on the
   resulting timeline and on one listing of the files. A clean after that listing makes the write
   retry.
2. In one critical section the transaction takes an instant, shows its heartbeat (`heartbeat.py`)
   and requests it.
3. Files are written outside, each after its marker.
4. In a second critical section the transaction reloads the timeline, checks that it is still its
   own, checks what other writers did since the plan (`conflicts.py`, `write/commit_validation.py`),
   deletes files that no returned result names, and completes the instant. Nothing raises after
   that step: a failure is a warning and is left to the next writer (`post_commit.py`).

Locks (`lock_manager.py`, `locks/`): any change of the timeline, the metadata table or the
properties runs in a critical section, on a timeline that was loaded in it. One operation has one
lock manager, whose critical sections nest. A lease can expire while its holder is stalled.
Therefore the table's properties are replaced only by compare-and-set, and a writer that takes over
a pending operation fences it first.

Stalled writers: every deciding step (a planned request, a completed file, a manifest) is checked
again afterwards, and reverted if other writers committed. The next writer revokes a zombie commit
in the critical section in which it reads the timeline (`zombie_commits.py`). A data file that was
written after its rollback is deleted by its writer, or before its instant leaves the timeline
(`attempt_files.py`).

Table services on a data table are plans that any writer executes (`planned_services.py`). A
restore (`restore.py`) is one rollback after another; `restore_target.py` computes the files that
remain, which a savepoint names. If the metadata table cannot be rolled back, `admin/restore.py`
removes it first.
"""
