"""How many calls a small commit to a table in a bucket makes, and how many wait for one another.

The bounds may be lowered; what raises them makes every small commit in a bucket slower. The server
sees the requests that pyhudi counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Literal

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import events
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


@pytest.fixture
def proxy(s3_server: S3Server) -> Iterator[Proxy]:
    proxy = Proxy(s3_server.port)
    yield proxy
    proxy.close()


def test_requests_of_operations_are_those_that_the_server_saw(
    s3_server: S3Server, proxy: Proxy, no_variables: None
) -> None:
    """By kind, for a write with an upload in parts, services, reads and deletes."""
    s3_server.make_bucket("counted")
    storage = {**s3_server.options, "aws_endpoint_url": f"http://127.0.0.1:{proxy.port}"}
    proxy.set_delay(0)
    before = events.storage_requests()
    ended: list[events.Operation] = []

    def keep(event: events.Event) -> None:
        if isinstance(event, events.Operation) and event.parent is None:
            ended.append(event)

    table = pyhudi.create_table(
        "s3://counted/t", rows(0).schema, key="id", partition_by="city", order_by="v",
        type="mor", storage_options=storage,
        options={"hoodie.compact.inline": True, "hoodie.compact.inline.max.delta.commits": 2},
    )  # fmt: skip
    large = pa.table({"id": random_ids(600_000), "city": ["c"] * 600_000, "v": [1] * 600_000})
    with events.listen(keep):
        table.bulk_insert(large)
        for turn in range(3):
            seen, counted = proxy.by_kind, len(ended)
            result = table.upsert(rows(turn))
            now = proxy.by_kind
            requests = ended[counted].requests
            assert {kind: requests[kind].total for kind in requests} == {
                kind: now[kind] - seen[kind] for kind in now if now[kind] != seen[kind]
            }
            assert requests["write"].bytes_sent > result.bytes_written
        assert table.count() == 600_000 + 160
        table.clean(retain=1)
    sent = {kind: total.since(before[kind]) for kind, total in events.storage_requests().items()}
    assert {kind: sent[kind].total for kind in proxy.by_kind} == proxy.by_kind
    assert sent["other"].total == 0
    assert all(number > 0 for number in proxy.by_kind.values())
    assert sent["read"].bytes_received > 0
    pyhudi.drop_table("s3://counted/t", storage_options=storage)


def random_ids(count: int) -> list[str]:
    """Keys that do not compress, so that their file is uploaded in parts."""
    return [f"{value:032x}" for value in map(Random(7).getrandbits, [128] * count)]
