"""`make golden`: every golden read, table by table, and how it compares with Apache Hudi's."""

from __future__ import annotations

import argparse
import fnmatch
import sys
import tempfile
from collections import Counter
from pathlib import Path

import pyhudi
from pyhudi.errors import HudiError, UnsupportedTableFeature
from tests.helpers.tables import Case, GoldenTables, cases


def judge(case: Case, golden: GoldenTables) -> tuple[str, str]:
    """("equal" | "refused" | "wrong" | "failed", what there is to say about it)."""
    base = golden.unpack(case.table)
    try:
        difference = case.mismatch(case.read(pyhudi.open_table(str(base))))
    except HudiError as error:
        text = str(error).splitlines()[0]
        if case.guarded is not None and isinstance(error, case.guarded):
            return "equal", f"both refuse: {text}"
        if isinstance(error, UnsupportedTableFeature):
            return "refused", text
        return "failed", f"{type(error).__name__}: {text}"
    except Exception as error:  # noqa: BLE001 - the report goes on and names it
        return "failed", f"{type(error).__name__}: {error}"
    if case.guarded is not None:
        return "wrong", "rows, where Hudi refuses to read"
    return ("equal", "") if difference is None else ("wrong", difference)


def main() -> int:
    """Prints the report; fails when a read is wrong or failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("glob", nargs="?", default="*", help="tables, e.g. 'v9_mor_*'")
    parser.add_argument("-q", "--quiet", action="store_true", help="leave out the equal ones")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        golden = GoldenTables(Path(folder))
        for case in cases():
            if not fnmatch.fnmatch(case.table, options.glob):
                continue
            verdict, text = judge(case, golden)
            counts[verdict] += 1
            if verdict != "equal" or not options.quiet:
                sys.stdout.write(f"{verdict:8} {case!s:48} {text}\n")
    total = sum(counts.values())
    parts = ", ".join(f"{counts[kind]} {kind}" for kind in ("equal", "refused", "wrong", "failed"))
    sys.stdout.write(f"{total} reads: {parts}\n")
    return 1 if counts["wrong"] or counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
