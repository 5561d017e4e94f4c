"""Validators: functions that look at a commit before it completes."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.api.pending_commit import Validation
from pyhudi.engine.local import LocalEngine
from pyhudi.errors import ConfigError, ConstraintViolation
from pyhudi.table.participants import CommitParticipant
from tests.helpers.table_builder import SMALL, TableBuilder

TABLE = TableBuilder(
    {"id": (pa.string(), str), "part": (pa.string(), "x"), "n": (pa.int64(), 1)},
    partition_by="part",
    options=SMALL,
)
KINDS = list(itertools.product((6, 8, 9), ("cow", "mor")))


def make(base: Path, version: int = 9, kind: Any = "cow") -> pyhudi.HudiTable:
    return TABLE.make(base, version=version, kind=kind, first=TABLE.rows(["a", "b", "c"]))


def ids(scan: Any) -> list[str]:
    return sorted(scan.to_arrow()["id"].to_pylist())


@pytest.mark.parametrize(("version", "kind"), KINDS)
def test_validator_sees_the_commit(tmp_path: Path, version: int, kind: Any) -> None:
    table = make(tmp_path / "t", version, kind)
    seen: list[Any] = []

    def look(commit: pyhudi.PendingCommit) -> None:
        result = commit.result
        seen.append(
            (
                (result.operation, result.rows_inserted, result.rows_updated, result.rows_deleted),
                ids(commit.rows()),
                ids(commit.scan_before()),
                ids(commit.scan_after(["id"], "n < 5")),
                commit.scan_after().count(),
            )
        )

    validated = table.with_validators(look)
    validated.upsert(TABLE.rows(["a", "d"], n=7))
    validated.delete("id = 'b'")
    validated.update("id = 'a'", {"n": "2"})
    validated.merge(TABLE.rows(["e"], part="y")).when_not_matched_insert_all().execute()
    validated.overwrite_partitions(TABLE.rows(["f"], part="y", n=9))
    with validated.transaction() as tx:
        tx.delete("id = 'f'")
        tx.upsert(TABLE.rows(["g"]))
    assert seen == [
        (("UPSERT", 1, 1, 0), ["a", "d"], ["a", "b", "c"], ["b", "c"], 4),
        (("DELETE", 0, 0, 1), [], ["a", "b", "c", "d"], ["c"], 3),
        (("UPSERT", 0, 1, 0), ["a"], ["a", "c", "d"], ["a", "c"], 3),
        (("UPSERT", 1, 0, 0), ["e"], ["a", "c", "d"], ["a", "c", "e"], 4),
        (("INSERT_OVERWRITE", 1, 0, 0), ["f"], ["a", "c", "d", "e"], ["a", "c"], 4),
        (("UPSERT", 1, 0, 1), ["g"], ["a", "c", "d", "f"], ["a", "c", "g"], 4),
    ]
    assert ids(validated.refresh().scan()) == ["a", "c", "d", "g"]


def fail(_: pyhudi.PendingCommit) -> None:
    raise ZeroDivisionError


WRITES: dict[str, Callable[[pyhudi.HudiTable], Any]] = {
    "upsert": lambda table: table.upsert(TABLE.rows(["a", "z"], n=5)),
    "bulk_insert": lambda table: table.bulk_insert(TABLE.rows(["z"])),
    "overwrite": lambda table: table.overwrite(TABLE.rows(["z"])),
    "delete": lambda table: table.delete("n = 1"),
    "sql": lambda table: table.sql("DELETE FROM t WHERE n = 1"),
    "new columns": lambda table: table.upsert(
        [{"id": "z", "part": "x", "n": 1, "new": 1}], schema_mode="merge"
    ),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize(("version", "kind"), [(6, "mor"), (8, "cow"), (9, "mor")])
def test_exception_rolls_the_commit_back(
    tmp_path: Path, version: int, kind: Any, write: str
) -> None:
    table = make(tmp_path / "t", version, kind)
    before = table.to_arrow().sort_by("id")
    with pytest.raises(ZeroDivisionError):
        WRITES[write](table.with_validators(fail))
    assert table.refresh().to_arrow().sort_by("id") == before
    assert not table.check(deep=True)
    WRITES[write](table)
    assert table.refresh().to_arrow().sort_by("id") != before
    assert not table.check(deep=True)


@pytest.mark.parametrize("outcome", [False, 0, "bad"])
def test_result_other_than_true_rejects_the_commit(tmp_path: Path, outcome: Any) -> None:
    table = make(tmp_path / "t")

    def has_rows(_: pyhudi.PendingCommit) -> Any:
        return outcome

    with pytest.raises(ConstraintViolation, match="the validator has_rows returned") as error:
        table.with_validators(lambda _: True, has_rows).delete("id = 'a'")
    assert error.value.constraint == "has_rows"
    assert table.refresh().count() == 3


def test_validator_runs_again_after_a_conflict(tmp_path: Path) -> None:
    """The other writer commits after the plan; the validator of the retry sees its rows."""
    from pyhudi.write.memory_rows import MemoryRows  # noqa: PLC0415 - patched

    table = make(tmp_path / "t")
    other = pyhudi.open_table(table.uri)
    assign = MemoryRows.for_upsert
    seen: list[list[str]] = []

    def assign_later(rows: MemoryRows) -> Any:
        assigned = assign(rows)
        if not seen and other.refresh().count() == 3:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(MemoryRows, "for_upsert", assign)
                other.upsert(TABLE.rows(["a", "y"], n=4))
        return assigned

    validated = table.with_validators(lambda commit: seen.append(ids(commit.scan_after())))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MemoryRows, "for_upsert", assign_later)
        validated.upsert(TABLE.rows(["a", "z"], n=5))
    assert seen == [["a", "b", "c", "y", "z"]]
    assert ids(table.refresh().scan()) == ["a", "b", "c", "y", "z"]


def test_services_and_writes_without_a_commit_call_no_validator(tmp_path: Path) -> None:
    table = make(tmp_path / "t", kind="mor").with_validators(fail)
    table.delete("id = 'none'")
    pyhudi.open_table(table.uri).upsert(TABLE.rows(["a"], n=3))
    table.refresh().compact()
    table.cluster()


def test_handles_keep_their_validators(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    validated = table.with_validators(fail)
    table.delete("id = 'a'")
    validated.with_validators().delete("id = 'b'")
    with pytest.raises(ZeroDivisionError):
        validated.delete("id = 'c'")
    with pytest.raises(ConfigError, match="writer has no validators"):
        validated.writer()
    with pytest.raises(ConfigError, match="validators"):
        table.with_validators("no function")  # type: ignore[arg-type]


def test_validators_stay_on_the_driver() -> None:
    """Spark's executors get the participants of a write, which do nothing there."""
    pickled = pickle.dumps(Validation((lambda _: True,), LocalEngine()))
    assert type(pickle.loads(pickled)) is CommitParticipant  # noqa: S301 - just pickled
