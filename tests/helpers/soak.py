"""Processes that write to one table, read it, and are killed: what they said is compared then.

    python -m tests.helpers.soak SECONDS URI

runs it on a new table. Whoever has written appends a line to a file of its own once that is done,
so a line without its rows is a lost write; a row without a line is one whose writer died before it
could say so.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

import pyhudi
from pyhudi.errors import CommitConflict, HistoryUnavailable, LockTimeout

CITIES = ("rome", "oslo", "lima")


@dataclass
class Soaked:
    """How it went."""

    said: int = 0
    """Writes that somebody was told of."""
    rows: int = 0
    killed: int = 0
    reads: int = 0
    findings: list[str] = field(default_factory=list)
    """What is wrong; empty if nothing is."""


def rows_of(keys: list[str], value: int) -> pa.Table:
    return pa.table(
        {
            "id": keys,
            "city": [CITIES[hash_of(key) % len(CITIES)] for key in keys],
            "v": pa.array([value] * len(keys), pa.int64()),
        }
    )


def hash_of(key: str) -> int:
    """The same in each process."""
    return sum(map(ord, key))


def write(uri: str, how: Mapping[str, Any], name: str, said: str) -> None:
    """Writes until it is killed. One writer's value of its own key never goes back."""
    number = int(time.time() * 1000)
    while True:
        number += 1
        table = pyhudi.open_table(uri, **how)
        new = f"{name}-{number}"
        try:
            if number % 3:
                table.upsert(rows_of([new, name, f"shared{number % 4}"], number))
            else:
                table.bulk_insert(rows_of([new], number), commit_id=new)
        except (CommitConflict, LockTimeout, HistoryUnavailable):
            continue
        with Path(said).open("a") as file:
            file.write(json.dumps({"new": new, "own": name if number % 3 else "", "v": number}))
            file.write("\n")


def read(uri: str, how: Mapping[str, Any], said: str) -> None:
    """Reads until it is killed, and says what it must not have seen."""
    newest: dict[str, int] = {}
    while True:
        try:
            rows = pyhudi.open_table(uri, **how).scan().to_arrow().to_pylist()
        except HistoryUnavailable:
            continue
        found = {row["id"]: row["v"] for row in rows}
        wrong = []
        if len(found) < len(rows):
            wrong.append("keys are there twice")
        wrong += [f"{key} is gone" for key in newest if key not in found]
        owns = {key: v for key, v in found.items() if "-" not in key and "shared" not in key}
        wrong += [f"{key} went back" for key, v in owns.items() if v < newest.get(key, 0)]
        newest |= found
        with Path(said).open("a") as file:
            file.write(json.dumps({"reads": len(rows), "wrong": wrong}) + "\n")


def soak(
    uri: str,
    seconds: float,
    *,
    type_: Literal["cow", "mor"] = "mor",
    version: int = 9,
    writers: int = 8,
    readers: int = 2,
    storage_options: Mapping[str, str] | None = None,
    options: Mapping[str, object] | None = None,
    seed: int = 0,
) -> Soaked:
    """Makes a table and has processes at work on it, of which one after the other is killed."""
    how: dict[str, Any] = {"storage_options": storage_options, "options": options}
    schema = rows_of(["a"], 0).schema
    pyhudi.create_table(
        uri, schema, key="id", partition_by="city", type=type_, version=version, **how
    )
    chance, context = random.Random(seed), multiprocessing.get_context("spawn")
    result = Soaked()
    with tempfile.TemporaryDirectory() as folder:
        lines = Path(folder)

        def start(number: int) -> tuple[Any, Path]:
            told = str(lines / f"{number}-{chance.random()}")
            arguments: tuple[Any, ...] = (uri, how, f"w{number}", told)
            target: Any = write
            if number >= writers:
                target, arguments = read, (uri, how, told)
            process = context.Process(target=target, args=arguments, daemon=True)
            process.start()
            return process, Path(told)

        processes = [start(number) for number in range(writers + readers)]
        wait_for_lines([lines for _, lines in processes])
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            time.sleep(chance.uniform(0.3, 1.5))
            number = chance.randrange(len(processes))
            process, its_lines = processes[number]
            if not process.is_alive():
                result.findings.append(f"process {number} ended by itself")
            elif not its_lines.exists():
                continue  # It has not come to anything yet.
            kill(process)
            result.killed += 1
            processes[number] = start(number)
        for process, _ in processes:
            kill(process)
        told = [line for file in lines.iterdir() for line in file.read_text().splitlines()]
    judge(uri, how, [json.loads(line) for line in told if line.endswith("}")], result)
    return result


def wait_for_lines(files: list[Path], seconds: float = 120) -> None:
    """Wait until each process has written a line: on a busy machine they start slowly."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and not all(file.exists() for file in files):
        time.sleep(0.1)


def kill(process: Any) -> None:
    if process.is_alive():
        os.kill(process.pid, signal.SIGKILL)
    process.join()


def judge(uri: str, how: Mapping[str, Any], told: list[dict[str, Any]], result: Soaked) -> None:
    """Compares what is in the table with what was said."""
    table = pyhudi.open_table(uri, **how)
    # Those that died a moment ago are dead for another machine only after a while; here at once.
    table.upsert(rows_of(["last"], 1))
    rows = table.scan().to_arrow().to_pylist()
    found = {row["id"]: row["v"] for row in rows}
    result.rows = len(rows)
    if len(found) < len(rows):
        result.findings.append("keys are there twice")
    for line in told:
        if "reads" in line:
            result.reads += 1
            result.findings += line["wrong"]
            continue
        result.said += 1
        if found.get(line["new"]) != line["v"]:
            result.findings.append(f"{line['new']} was said and is not there")
        if line["own"] and found.get(line["own"], 0) < line["v"]:
            result.findings.append(f"{line['own']} was said to be {line['v']} and is older")
    checked = pyhudi.open_table(uri, **how).check(deep=True)
    result.findings += [str(finding) for finding in checked.findings]


if __name__ == "__main__":
    soaked = soak(sys.argv[2], float(sys.argv[1]))
    sys.stdout.write(f"{soaked}\n")
    sys.exit(bool(soaked.findings))
