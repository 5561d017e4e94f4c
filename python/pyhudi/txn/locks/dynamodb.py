"""Hudi's DynamoDB lock, by the item of Amazon's lock client (1.2.0 of `dynamodb-lock-client`).

One item a lock. Nobody compares clocks: who waits looks whether the item's version changes within
the lease that the item names, and takes the lock by a condition on that version if it does not.
Sources: `DynamoDBBasedLockProvider`, `DynamoDBBasedImplicitPartitionKeyLockProvider` (Hudi 1.2.0).
"""

from __future__ import annotations

import socket
from typing import Any

from pyhudi.clock import Clock
from pyhudi.errors import StorageError, retryable_conflict
from pyhudi.txn.locks.lease_renewal import Renewal
from pyhudi.txn.locks.optional_imports import extra

_POLL_S = 1.0
_KEY = "key"


class DynamoDbLock:
    """The lock of one partition key."""

    def __init__(
        self,
        key: str,
        clock: Clock,
        *,
        table: str = "hudi_locks",
        region: str = "",
        endpoint_url: str = "",
        lease_ms: int = 60_000,
    ) -> None:
        """key: all writers' name for the lock. lease_ms: validity without a sign of life."""
        self._key = key
        self._clock = clock
        self._table = table
        self._region = region
        self._endpoint = endpoint_url
        self._lease_ms = lease_ms
        self._renewal = Renewal(self._renew, lease_ms // 3, "pyhudi-dynamodb-lock")
        self._client: Any = None
        self._owner = ""
        self._version = ""
        self._last_ms = 0

    def acquire(self, timeout_ms: int) -> bool:
        """Takes the lock. Raises `StorageError` for what the service says, and without a table."""
        try:
            return self._acquire(timeout_ms)
        except self._errors as error:
            raise self._storage_error(error) from error

    def _acquire(self, timeout_ms: int) -> bool:
        if self._client is None:
            self._client = extra("boto3", "dynamodb").client(
                "dynamodb",
                region_name=self._region or None,
                endpoint_url=self._endpoint or None,
            )
        # Not the time of day: where that is set forward, a living holder's lease would seem over.
        since = self._clock.ticks_ms()
        until, version = since + timeout_ms, ""
        while True:
            item = self._item()
            if item is None:
                taken = self._put("attribute_not_exists(#k)", {})
            elif "isReleased" in item:
                released = {":r": {"S": "1"}}
                taken = self._put("attribute_exists(#k) AND isReleased = :r", released)
            else:
                found = item["recordVersionNumber"]["S"]
                now = self._clock.ticks_ms()
                if found != version:
                    version, since = found, now
                lease = int(item["leaseDuration"]["S"])
                # A dead holder's lease is waited for, however short the patience.
                taken = now - since > lease and self._put(
                    "attribute_exists(#k) AND recordVersionNumber = :v", {":v": {"S": found}}
                )
            if taken:
                self._renewal.start()
                return True
            if self._clock.ticks_ms() >= until:
                return False
            self._clock.sleep(_POLL_S)

    def _item(self) -> dict[str, Any] | None:
        answer = self._client.get_item(
            TableName=self._table, Key={_KEY: {"S": self._key}}, ConsistentRead=True
        )
        found: dict[str, Any] | None = answer.get("Item")
        return found

    def _put(self, condition: str, values: dict[str, Any]) -> bool:
        owner = f"{socket.gethostname()}{self._clock.uuid()}"
        version, now = self._clock.uuid(), self._clock.ticks_ms()
        item = {
            _KEY: {"S": self._key},
            "ownerName": {"S": owner},
            "leaseDuration": {"S": str(self._lease_ms)},
            "recordVersionNumber": {"S": version},
        }
        told = {"ExpressionAttributeValues": values} if values else {}
        # Before the item is there: what interrupts comes at any time, and `release` looks for it.
        self._owner, self._version, self._last_ms = owner, version, now
        try:
            self._client.put_item(
                TableName=self._table,
                Item=item,
                ConditionExpression=condition,
                ExpressionAttributeNames={"#k": _KEY},
                **told,
            )
        except self._client.exceptions.ConditionalCheckFailedException:
            # A request that was sent twice finds what it wrote itself.
            found = self._item()
            if found is None or found["recordVersionNumber"]["S"] != version:
                self._version = ""
                return False
        return True

    def _renew(self) -> None:
        version, now = self._clock.uuid(), self._clock.ticks_ms()
        try:
            self._client.update_item(
                TableName=self._table,
                Key={_KEY: {"S": self._key}},
                UpdateExpression="SET leaseDuration = :l, recordVersionNumber = :n",
                ConditionExpression=_OWN,
                ExpressionAttributeNames={"#k": _KEY},
                ExpressionAttributeValues={
                    ":l": {"S": str(self._lease_ms)},
                    ":n": {"S": version},
                    **self._own_values(),
                },
            )
        except self._client.exceptions.ConditionalCheckFailedException:
            self._version = ""
            return
        self._version, self._last_ms = version, now

    def _own_values(self) -> dict[str, Any]:
        return {":v": {"S": self._version}, ":o": {"S": self._owner}}

    @property
    def lasts_ms(self) -> int | None:
        """Renewals may fail for so long."""
        return self._lease_ms // 2

    def check(self, within_ms: int = 0) -> None:  # noqa: ARG002 - as long in any case
        """Raises `CommitConflict` once half of the lease has passed without a sign of life."""
        if not self._version or self._clock.ticks_ms() - self._last_ms > self._lease_ms // 2:
            msg = f"the lease of the table's lock {self._key!r} in DynamoDB was lost"
            raise retryable_conflict(msg)

    def release(self) -> None:
        """Deletes the item where it is this writer's own still."""
        self._renewal.stop()
        if not self._version:
            return
        try:
            self._client.delete_item(
                TableName=self._table,
                Key={_KEY: {"S": self._key}},
                ConditionExpression=_OWN,
                ExpressionAttributeNames={"#k": _KEY},
                ExpressionAttributeValues=self._own_values(),
            )
        except self._client.exceptions.ConditionalCheckFailedException:
            pass
        except self._errors as error:
            raise self._storage_error(error) from error
        finally:
            self._version = ""

    @property
    def _errors(self) -> tuple[type[Exception], ...]:
        errors = extra("botocore.exceptions", "dynamodb")
        return (errors.BotoCoreError, errors.ClientError)

    def _storage_error(self, error: Exception) -> StorageError:
        hint = "The table is the option hoodie.write.lock.dynamodb.table; Hudi makes it."
        return StorageError(f"DynamoDB table {self._table}: {error}", hint=hint)

    def holder(self) -> str:
        """The key of the lock."""
        return f"a holder of {self._key!r} in DynamoDB's table {self._table}"


_OWN = "attribute_exists(#k) AND recordVersionNumber = :v AND ownerName = :o"
