"""Names for routes that Spark's shuffle spreads evenly over its partitions.

Spark assigns a route to a partition by the hash of its name, and a few names seldom have hashes of
different partitions: one task would write three of four files. This module looks for names with
suitable hashes. If Spark changed its hash, only the balance would be lost.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

DIGITS = 8
"""Digits of the route's number at the beginning of its name."""
_TRIES = 16
_SEED = 42
_BITS = 0xFFFFFFFF


def shuffle_partitions(spark: SparkSession) -> int:
    """Return the number of shuffle partitions, before Spark joins small ones."""
    configured = spark.conf.get("spark.sql.shuffle.partitions")
    first = spark.conf.get("spark.sql.adaptive.coalescePartitions.initialPartitionNum", None)
    return int(first or configured or 1)


def route_names(count: int, partitions: int) -> tuple[str, ...]:
    """Return a name for each route, in their order."""
    loads = [0] * partitions
    names = []
    for number in range(count):
        tries = [f"{number:0{DIGITS}d}{salt:04d}" for salt in range(_TRIES)]
        slots = [spark_hash(name.encode()) % partitions for name in tries]
        chosen = min(range(_TRIES), key=lambda at: loads[slots[at]])
        loads[slots[chosen]] += 1
        names.append(tries[chosen])
    return tuple(names)


def route_number(name: str) -> int:
    """Return the number of a route."""
    return int(name[:DIGITS])


def spark_hash(data: bytes) -> int:
    """Return Spark's hash of whole words as a signed integer (`Murmur3_x86_32`, 3.5 and 4)."""
    result = _SEED
    for start in range(0, len(data), 4):
        word = int.from_bytes(data[start : start + 4], "little")
        word = _rotate(word * 0xCC9E2D51 & _BITS, 15) * 0x1B873593 & _BITS
        result = (_rotate(result ^ word, 13) * 5 + 0xE6546B64) & _BITS
    result ^= len(data)
    result = (result ^ result >> 16) * 0x85EBCA6B & _BITS
    result = (result ^ result >> 13) * 0xC2B2AE35 & _BITS
    result ^= result >> 16
    return result - (result >> 31 << 32)


def _rotate(word: int, by: int) -> int:
    return (word << by | word >> (32 - by)) & _BITS
