"""A process that maintains a table until it is killed.

python -m tests.spark_cluster.maintainer BASE
"""

from __future__ import annotations

import sys

import pyhudi
from tests.spark_cluster.streaming_driver import SHORT


def main(base: str) -> None:
    options = {**SHORT, "hoodie.clean.commits.retained": 5}
    pyhudi.open_table(base, options=options).maintain(every="5s")


if __name__ == "__main__":
    main(sys.argv[1])
