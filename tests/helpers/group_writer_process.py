"""A process whose threads write through one group writer, and print what is confirmed.

    python -m tests.helpers.group_writer_process BASE HOW

HOW: "exit" leaves the writer open, "interrupt" waits for Ctrl-C in the block of the writer,
"forever" writes until the process is killed. Lines name each batch before it is submitted, and once
its future has a result.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import Any

import pyarrow as pa

import pyhudi

CALLERS = 4
ROWS = 3


def batch(name: str) -> pa.Table:
    """Rows of one batch, in two partitions."""
    return pa.table(
        {
            "id": [f"{name}/{n}" for n in range(ROWS)],
            "city": ["rome", "oslo", "rome"],
            "v": [1] * ROWS,
        }
    )


def say(line: str) -> None:
    # One call, so that lines of several threads do not mix.
    os.write(1, f"{line}\n".encode())


def write_forever(writer: pyhudi.GroupWriter, caller: int) -> None:
    number = 0
    while True:
        name = f"{caller}-{number}"
        say(f"submitted {name}")
        writer.upsert(batch(name), commit_id=name).result()
        say(f"confirmed {name}")
        number += 1


def main(base: str, how: str) -> None:
    table = pyhudi.open_table(base)
    if how == "exit":
        writer = table.writer(max_seconds=60)
        for number in range(CALLERS):
            writer.upsert(batch(f"0-{number}"))
        return
    if how == "interrupt":
        with table.writer(max_seconds=60) as writer:
            futures: list[Any] = [writer.upsert(batch(f"0-{n}")) for n in range(CALLERS)]
            try:
                say("waiting")
                time.sleep(60)
            finally:
                assert not any(future.done() for future in futures)
    writer = table.writer()
    for caller in range(CALLERS):
        threading.Thread(target=write_forever, args=(writer, caller), daemon=True).start()
    time.sleep(600)


if __name__ == "__main__":
    main(*sys.argv[1:])
