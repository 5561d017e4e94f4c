"""How long, and with how much memory, a scan of a very large table is planned. Reads no rows.

Each case runs in a process of its own: open the table, plan a scan with a partition filter. The
aims are two seconds and one GiB for the whole process.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from planning_table import Size, make

SECONDS = 2.0
BYTES = 1 << 30

CASES = {
    "one partition": "day = 'day-00500'",
    "a tenth of the partitions": "day >= 'day-00100' AND day < 'day-00200'",
}
SOURCES = {"metadata table": "true", "listing": "false"}


def main() -> int:
    """Makes the table, runs every case, prints a line of JSON for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="for the table, kept and used again")
    parser.add_argument("--check", action="store_true", help="fail beyond the aims")
    parser.add_argument("--case", nargs=3, metavar=("FOLDER", "FILTER", "METADATA"))
    given = parser.parse_args()
    if given.case:
        sys.stdout.write(json.dumps(plan(*given.case)))
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.folder or Path(scratch) / "table"
        if not (folder / ".hoodie").exists():
            make(folder, Size())
        results = [measure(folder, case, source) for case in CASES for source in SOURCES]
    slow = [one for one in results if one["seconds"] > SECONDS or one["peak_bytes"] > BYTES]
    return 1 if slow and given.check else 0


def measure(folder: Path, case: str, source: str) -> dict[str, float]:
    """One case in a fresh process."""
    command = [sys.executable, __file__, "--case", str(folder), CASES[case], SOURCES[source]]
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
    result: dict[str, float] = json.loads(done.stdout)
    sys.stdout.write(json.dumps({"case": case, "files from": source, **result}) + "\n")
    return result


def plan(folder: str, where: str, metadata: str) -> dict[str, float]:
    """Opens and plans; the import of pyhudi is not timed."""
    import pyhudi  # noqa: PLC0415 - this process is what is measured

    start = time.perf_counter()
    table = pyhudi.open_table(folder, options={"hoodie.metadata.enable": metadata})
    opened = time.perf_counter()
    slices = table.scan(where=where).plan().num_rows
    done = time.perf_counter()
    return {
        "slices": slices,
        "open_seconds": round(opened - start, 3),
        "plan_seconds": round(done - opened, 3),
        "seconds": round(done - start, 3),
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


if __name__ == "__main__":
    sys.exit(main())
