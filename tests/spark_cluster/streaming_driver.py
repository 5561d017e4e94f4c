"""A driver with one streaming query into a table that other queries write to, until it is killed.

    python -m tests.spark_cluster.streaming_driver BASE URL FOLDER NAME METHOD

The query reads the files of the folder NAME, and starts again after a conflict.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import cast

from pyhudi.errors import CommitConflict, HistoryUnavailable, LockTimeout
from pyhudi.spark import sink
from pyhudi.spark.stream_sink import SinkMethod
from tests.spark_cluster.standalone import session_at

SHORT = {"hoodie.write.lock.storage.validity.timeout.secs": 10}
"""The shortest lock lease: it expires soon after its writer is killed."""
EXPECTED = (CommitConflict, LockTimeout, HistoryUnavailable)
"""Errors after which a query starts again."""


def main(base: str, url: str, folder: str, name: str, method: str) -> None:
    spark = session_at(url, Path(folder) / "driver", {"spark.cores.max": "1"})
    write = sink(base, cast("SinkMethod", method), identifier=name, options=SHORT)
    stream = (
        spark.readStream.schema("id string, city string, v long")
        .option("maxFilesPerTrigger", 20)
        .json(str(Path(folder) / name))
    )
    while True:
        query = (
            stream.writeStream.foreachBatch(write)
            .option("checkpointLocation", str(Path(folder) / f"checkpoint-{name}"))
            .trigger(processingTime="1 second")
            .start()
        )
        try:
            query.awaitTermination()
        except Exception as error:
            if not any(kind.__name__ in str(error) for kind in EXPECTED):
                raise
            sys.stdout.write(f"starts again after {str(error)[:300]}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
