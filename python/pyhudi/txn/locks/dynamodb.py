"""Hudi's DynamoDB lock, by the item of Amazon's lock client (1.2.0 of `dynamodb-lock-client`).

Each lock is one item. No clocks are compared: a waiting writer checks whether the item's version
changes within the lease that the item names. If not, it takes the lock, conditional on that
version. Sources: `DynamoDBBasedLockProvider`, `DynamoDBBasedImplicitPartitionKeyLockProvider` (Hudi
1.2.0).
"""

from __future__ import annotations

import socket
from typing import Any

from pyhudi.clock import Clock
from pyhudi.errors import StorageError, retryable_conflict
from pyhudi.txn.locks.optional_imports import extra
from pyhudi.txn.renewal import Renewal

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
        """key: the name of the lock for all writers. lease_ms: validity without a renewal."""
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
        """Acquire the lock. Raises `StorageError` if the service fails or has no such table."""
        try:
            return self._acquire(timeout_ms)
        except self._errors as error:
            raise self._storage_error(error) from error

    def _acquire(self, timeout_ms: int) -> bool:
        self._connect()
        # If the time of day were set forward, an active holder's lease would seem expired.
        since = self._clock.ticks_ms()
        deadline_ms, version = since + timeout_ms, ""
        while True:
            item = self._item()
            if item is None:
                is_acquired = self._put("attribute_not_exists(#k)", {})
            elif "isReleased" in item:
                released = {":r": {"S": "1"}}
                is_acquired = self._put("attribute_exists(#k) AND isReleased = :r", released)
            else:
                item_version = item["recordVersionNumber"]["S"]
                now = self._clock.ticks_ms()
                if item_version != version:
                    version, since = item_version, now
                lease = int(item["leaseDuration"]["S"])
                # It waits for a failed holder's lease even beyond the timeout.
                is_acquired = now - since > lease and self._put(
                    "attribute_exists(#k) AND recordVersionNumber = :v", {":v": {"S": item_version}}
                )
            if is_acquired:
                self._renewal.start()
                return True
            if self._clock.ticks_ms() >= deadline_ms:
                return False
            self._clock.sleep(_POLL_S)

    def _connect(self) -> None:
        if self._client is None:
            self._client = extra("boto3", "dynamodb").client(
                "dynamodb",
                region_name=self._region or None,
                endpoint_url=self._endpoint or None,
            )

    def _item(self) -> dict[str, Any] | None:
        response = self._client.get_item(
            TableName=self._table, Key={_KEY: {"S": self._key}}, ConsistentRead=True
        )
        item: dict[str, Any] | None = response.get("Item")
        return item

    def _put(self, condition: str, values: dict[str, Any]) -> bool:
        owner = f"{socket.gethostname()}{self._clock.uuid()}"
        version, now = self._clock.uuid(), self._clock.ticks_ms()
        item = {
            _KEY: {"S": self._key},
            "ownerName": {"S": owner},
            "leaseDuration": {"S": str(self._lease_ms)},
            "recordVersionNumber": {"S": version},
        }
        attribute_values = {"ExpressionAttributeValues": values} if values else {}
        # Set before the item exists: an interrupt can come at any time, and `release` needs them.
        self._owner, self._version, self._last_ms = owner, version, now
        try:
            self._client.put_item(
                TableName=self._table,
                Item=item,
                ConditionExpression=condition,
                ExpressionAttributeNames={"#k": _KEY},
                **attribute_values,
            )
        except self._client.exceptions.ConditionalCheckFailedException:
            # A repeated request fails on the item that it created itself.
            stored = self._item()
            if stored is None or stored["recordVersionNumber"]["S"] != version:
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
    def min_lease_ms(self) -> int | None:
        """Renewals may fail for this long."""
        return self._lease_ms // 2

    def check(self, within_ms: int = 0) -> None:  # noqa: ARG002 - as long in any case
        """Raise `CommitConflict` once half of the lease has passed without a renewal."""
        if not self._version or self._clock.ticks_ms() - self._last_ms > self._lease_ms // 2:
            msg = f"the lease of the table's lock {self._key!r} in DynamoDB was lost"
            raise retryable_conflict(msg)

    def release(self) -> None:
        """Delete the item if it is still this writer's."""
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
        hint = "The option hoodie.write.lock.dynamodb.table names the table; Hudi creates it."
        return StorageError(f"DynamoDB table {self._table}: {error}", hint=hint)

    def holder(self) -> str:
        """Return the key of the lock."""
        return f"a holder of {self._key!r} in DynamoDB's table {self._table}"

    def read_holder(self) -> str | None:
        """Return the owner that the item names.

        A failed holder is named until another writer takes the lock: only a wait for the lease
        shows that it has failed.
        """
        try:
            self._connect()
            item = self._item()
        except self._errors as error:
            raise self._storage_error(error) from error
        if item is None or "isReleased" in item:
            return None
        return ascii(item["ownerName"]["S"])[1:-1]


_OWN = "attribute_exists(#k) AND recordVersionNumber = :v AND ownerName = :o"
