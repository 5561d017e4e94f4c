"""The DynamoDB lock against moto's DynamoDB: the items and conditions of Amazon's lock client."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from pyhudi.clock import SystemClock
from pyhudi.errors import CommitConflict, StorageError
from pyhudi.txn.locks.dynamodb import DynamoDbLock
from tests.helpers.lock_context import held

KEY = "table"


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "tests")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "tests")
    with mock_aws():
        yield boto3.client("dynamodb", region_name="us-east-1")


@pytest.fixture
def locks(service: Any) -> Any:
    """The table as Hudi makes it."""
    service.create_table(
        TableName="hudi_locks",
        KeySchema=[{"AttributeName": "key", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "key", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    return service


class Clock(SystemClock):
    """Sleeping takes no time, and the clock goes on all the same."""

    slept_ms = 0

    def ticks_ms(self) -> int:
        return super().ticks_ms() + self.slept_ms

    def sleep(self, seconds: float) -> None:
        self.slept_ms += int(seconds * 1000)


def lock(clock: SystemClock | None = None, lease_ms: int = 60_000) -> DynamoDbLock:
    return DynamoDbLock(KEY, clock or Clock(), region="us-east-1", lease_ms=lease_ms)


def items(service: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = service.scan(TableName="hudi_locks")["Items"]
    return found


def test_dynamodb_lock_has_one_holder(locks: Any) -> None:
    one, other = lock(), lock()
    for _ in range(3):
        with held(one, 0):
            one.check()
            assert not other.acquire(3000)
            (item,) = items(locks)
            assert {name: next(iter(value)) for name, value in item.items()} == dict.fromkeys(
                ("key", "ownerName", "leaseDuration", "recordVersionNumber"), "S"
            )
            assert item["key"] == {"S": KEY}
        assert items(locks) == []


def test_dynamodb_lock_is_kept_by_renewal(locks: Any) -> None:
    one, waiting = lock(), lock()
    assert one.acquire(0)
    (before,) = items(locks)
    one._renew()
    (after,) = items(locks)
    assert before["recordVersionNumber"] != after["recordVersionNumber"]
    assert before["ownerName"] == after["ownerName"]
    one.check()
    assert not waiting.acquire(0)
    one.release()


def test_dynamodb_lock_detects_expired_lease(locks: Any) -> None:
    clock = Clock()
    dead = lock(clock)
    assert dead.acquire(0)
    dead._renewal.stop()
    heir = lock(Clock())
    assert heir.acquire(90_000)
    clock.sleep(61)
    with pytest.raises(CommitConflict, match="was lost"):
        dead.check()
    dead._renew()
    dead.release()
    heir.check()
    assert len(items(locks)) == 1
    heir.release()
    assert items(locks) == []


def test_dynamodb_lock_ignores_clock_set_forward(locks: Any) -> None:
    class SetForward(Clock):
        def now_ms(self) -> int:
            return super().now_ms() + 100 * self.slept_ms

    one, waiting = lock(), lock(SetForward())
    with held(one, 0):
        assert not waiting.acquire(10_000)
        one.check()
    assert items(locks) == []


def test_dynamodb_lock_is_free_after_interrupt(locks: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    one = lock()
    assert one.acquire(0)
    one.release()
    put = one._client.put_item

    def interrupted(**given: Any) -> None:
        put(**given)
        raise KeyboardInterrupt

    monkeypatch.setattr(one._client, "put_item", interrupted)
    with pytest.raises(KeyboardInterrupt), held(one, 0):
        pass
    assert items(locks) == []


def test_dynamodb_lock_takes_released_item(locks: Any) -> None:
    """Hudi's client can be told to keep the item."""
    item = {"key": KEY, "ownerName": "java", "leaseDuration": "60000", "isReleased": "1"}
    version = {"recordVersionNumber": "7"}
    full = {name: {"S": value} for name, value in {**item, **version}.items()}
    locks.put_item(TableName="hudi_locks", Item=full)
    with held(lock(), 0):
        (found,) = items(locks)
        assert "isReleased" not in found


@pytest.mark.usefixtures("service")
def test_dynamodb_lock_raises_for_missing_table() -> None:
    with pytest.raises(StorageError, match="DynamoDB table hudi_locks"):
        lock().acquire(0)


def test_read_holder_names_owner_of_item(locks: Any) -> None:
    holder, reader = lock(), lock()
    assert reader.read_holder() is None
    with held(holder, 1000):
        (item,) = items(locks)
        assert reader.read_holder() == item["ownerName"]["S"]
    assert reader.read_holder() is None


def test_read_holder_without_table_is_an_error(service: Any) -> None:
    with pytest.raises(StorageError, match="DynamoDB table hudi_locks"):
        lock().read_holder()
