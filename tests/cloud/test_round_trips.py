"""How many calls a small commit to a table in a bucket makes, and how many wait for one another.

The bounds may be lowered; what raises them makes every small commit in a bucket slower.
"""

from __future__ import annotations

from typing import Literal

import pyarrow as pa
import pytest

import pyhudi
from tests.helpers.s3.proxy import Proxy
from tests.helpers.s3.server import S3Server

MOST_CALLS = 65
"""61 on either type: 14 write log files of the metadata table, 22 are listings."""
MOST_ROUNDS = 24
"""18 where nothing else runs; requests that a busy machine holds up count as later ones."""


def rows(turn: int) -> pa.Table:
    keys = [*range(40), *range(100 + 40 * turn, 140 + 40 * turn)]
    return pa.table(
        {
            "id": [f"k{key}" for key in keys],
            "city": [f"c{key % 4}" for key in keys],
            "v": [turn] * len(keys),
        }
    )


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_commit_sends_requests_in_parallel(
    s3_server: S3Server, kind: Literal["cow", "mor"], request: pytest.FixtureRequest
) -> None:
    s3_server.make_bucket(f"round-trips-{kind}")
    proxy = Proxy(s3_server.port)
    request.addfinalizer(proxy.close)
    storage = {**s3_server.options, "aws_endpoint_url": f"http://127.0.0.1:{proxy.port}"}
    table = pyhudi.create_table(
        f"s3://round-trips-{kind}/t", rows(0).schema, key="id", partition_by="city",
        order_by="v", type=kind, storage_options=storage,
    )  # fmt: skip
    calls, rounds = [], []
    for turn in range(9):
        proxy.set_delay(0.03)
        table.upsert(rows(turn))
        calls.append(proxy.requests)
        rounds.append(proxy.rounds)
    # Services follow some commits.
    assert sorted(calls)[4] <= MOST_CALLS, calls
    assert sorted(rounds)[4] <= MOST_ROUNDS, rounds
