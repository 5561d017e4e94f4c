"""Measures the table of anomalies and stores it in `results.json`: `make anomalies`.

    python -m tests.anomalies.measure                 # all modes but those beside Apache Hudi
    python -m tests.anomalies.measure --hudi 1.2.0    # beside a release of Apache Hudi
    python -m tests.anomalies.measure --mode v9-cow   # modes whose names contain this

`scripts/generate_docs.py` then writes the page.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import warnings
from pathlib import Path

from tests.anomalies import results
from tests.anomalies.beside_hudi import RELEASES, measure_beside
from tests.anomalies.modes import BUCKETS, LOCAL_MODES, Mode, steps_in
from tests.anomalies.scenarios import SCENARIOS
from tests.anomalies.scripted_run import Place, measure
from tests.conftest import MEMORY
from tests.helpers.oracle.client import HudiOracle
from tests.helpers.s3.server import S3Server


def main() -> None:
    """Measures and stores."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--hudi", choices=RELEASES, action="append", default=[])
    parser.add_argument("--mode", default="")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        for release in given.hudi:
            with HudiOracle(release) as hudi:
                results.store(measure_beside(hudi, Place(Path(folder))))
        if not given.hudi:
            _measure_modes(Path(folder), given.mode)


def _measure_modes(folder: Path, text: str) -> None:
    for mode in LOCAL_MODES:
        if text in f"{mode}-local":
            _measure_mode(mode, Place(folder))
    buckets = [mode for mode in BUCKETS if text in str(mode)]
    if buckets:
        server = S3Server(folder)
        server.make_bucket("anomalies")
        for mode in buckets:
            uri = f"s3://anomalies/{mode}"
            place = Place(bucket=uri, storage_options=server.options)
            _measure_mode(mode, place)
        server.close()


def _measure_mode(mode: Mode, place: Place) -> None:
    began, measured = time.monotonic(), {}
    for scenario in SCENARIOS:
        measured[scenario.name] = measure(scenario, mode, place, steps_in(mode)).summary
    results.store({str(mode): measured})
    sys.stderr.write(f"{mode}: {time.monotonic() - began:.0f} s\n")


if __name__ == "__main__":
    main()
