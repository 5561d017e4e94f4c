"""Names for routes by which Spark's shuffle spreads them evenly over its partitions.

Spark sends a row where the hash of its route's name says, and few names seldom have hashes that
differ by the number of partitions: of four files, three would be written by one task. So names are
looked for whose hashes do. With a hash of another kind only the balance would be lost.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

DIGITS = 8
"""Of a route's number, which its name begins with."""
_TRIES = 16
_SEED = 42
_BITS = 0xFFFFFFFF


def shuffle_partitions(spark: SparkSession) -> int:
    """How many partitions Spark shuffles into, before it joins small ones."""
    plain = spark.conf.get("spark.sql.shuffle.partitions")
    first = spark.conf.get("spark.sql.adaptive.coalescePartitions.initialPartitionNum", None)
    return int(first or plain or 1)


def route_names(count: int, partitions: int) -> tuple[str, ...]:
    """A name for each route, in their order."""
    loads = [0] * partitions
    names = []
    for number in range(count):
        tries = [f"{number:0{DIGITS}d}{salt:04d}" for salt in range(_TRIES)]
        slots = [spark_hash(name.encode()) % partitions for name in tries]
        chosen = min(range(_TRIES), key=lambda at: loads[slots[at]])
        loads[slots[chosen]] += 1
        names.append(tries[chosen])
    return tuple(names)


def number_of(name: str) -> int:
    """The number of a route."""
    return int(name[:DIGITS])


def spark_hash(text: bytes) -> int:
    """Spark's hash of a text of whole words, as a signed integer (`Murmur3_x86_32`, 3.5 and 4)."""
    found = _SEED
    for start in range(0, len(text), 4):
        word = int.from_bytes(text[start : start + 4], "little")
        word = _rotate(word * 0xCC9E2D51 & _BITS, 15) * 0x1B873593 & _BITS
        found = (_rotate(found ^ word, 13) * 5 + 0xE6546B64) & _BITS
    found ^= len(text)
    found = (found ^ found >> 16) * 0x85EBCA6B & _BITS
    found = (found ^ found >> 13) * 0xC2B2AE35 & _BITS
    found ^= found >> 16
    return found - (found >> 31 << 32)


def _rotate(word: int, by: int) -> int:
    return (word << by | word >> (32 - by)) & _BITS
