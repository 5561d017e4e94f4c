"""Several batches in one commit leave what their commits one after the other leave."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.config.extra_metadata import COMMIT_ID, COMMIT_IDS, commit_ids, with_commit_ids
from pyhudi.config.meta_columns import IS_DELETED
from pyhudi.errors import CorruptTable
from pyhudi.write.group_commit import Operation, convert_batch, count_combinable
from pyhudi.write.write_context import WriteContext
from tests.helpers.pairwise import pairwise
from tests.helpers.table_builder import SMALL, TableBuilder

TABLE = TableBuilder(
    {
        "id": (pa.string(), str),
        "city": (pa.string(), "rome"),
        "ts": (pa.int64(), 1),
        "v": (pa.int64(), 1),
    },
    partition_by="city",
    order_by="ts",
    options=SMALL,
)
WITH_DELETES = TableBuilder(
    {**TABLE.columns, IS_DELETED: (pa.bool_(), False)},
    partition_by="city",
    order_by="ts",
    options=SMALL,
)

Call = tuple[Operation, Any]


def combinable(
    table: pyhudi.HudiTable, calls: Sequence[Call], ids: Sequence[str | None] = ()
) -> int:
    context = WriteContext.open(table, None)
    batches = [
        convert_batch(context, operation, data, commit_id=commit_id)
        for (operation, data), commit_id in zip(calls, ids or [None] * len(calls), strict=True)
    ]
    return count_combinable(context.config, context.options, batches)


def upserts(*ids: str, **values: Any) -> Sequence[Call]:
    return [("upsert", TABLE.rows(some, **values)) for some in ids]


class TestCountCombinable:
    @pytest.fixture
    def table(self, tmp_path: Path) -> pyhudi.HudiTable:
        return TABLE.make(tmp_path / "t", metadata=False)

    def test_upserts_of_other_keys_are_combined(self, table: pyhudi.HudiTable) -> None:
        assert combinable(table, upserts("ab", "c", "de")) == 3

    def test_upserts_of_the_same_key_are_combined(self, table: pyhudi.HudiTable) -> None:
        assert combinable(table, upserts("ab", "bc", "b")) == 3

    def test_key_in_another_partition_begins_commit(self, table: pyhudi.HudiTable) -> None:
        assert combinable(table, [*upserts("ab", "cd"), *upserts("b", city="oslo")]) == 2

    def test_inserts_of_the_same_key_are_not_combined(self, table: pyhudi.HudiTable) -> None:
        inserts: list[Call] = [("insert", TABLE.rows(ids)) for ids in ("ab", "c", "dc", "e")]
        assert combinable(table, inserts) == 2

    def test_deletes_of_the_same_key_are_combined(self, table: pyhudi.HudiTable) -> None:
        assert combinable(table, [("delete_keys", ["a", "b"]), ("delete_keys", ["b"])]) == 2

    def test_deletes_with_partitions_begin_commit(self, table: pyhudi.HudiTable) -> None:
        named = TABLE.rows("c").select(["id", "city"])
        assert combinable(table, [("delete_keys", ["a"]), ("delete_keys", named)]) == 1

    def test_another_operation_begins_commit(self, table: pyhudi.HudiTable) -> None:
        calls = [*upserts("a", "b"), ("insert", TABLE.rows("c")), *upserts("d")]
        assert combinable(table, calls) == 2

    def test_repeated_commit_id_begins_commit(self, table: pyhudi.HudiTable) -> None:
        assert combinable(table, upserts(*"abc"), ["one", "two", "one"]) == 2

    def test_delete_marker_of_shared_key_begins_commit(self, tmp_path: Path) -> None:
        table = WITH_DELETES.make(tmp_path / "t", metadata=False)
        calls: list[Call] = [
            ("upsert", WITH_DELETES.rows("ab", **{IS_DELETED: deleted}))
            for deleted in (False, False, True)
        ]
        assert combinable(table, calls) == 2
        other: Call = ("upsert", WITH_DELETES.rows("c", **{IS_DELETED: True}))
        assert combinable(table, [*calls[:2], other]) == 3

    @pytest.mark.parametrize(
        ("option", "operation"),
        [
            ("hoodie.combine.before.upsert", "upsert"),
            ("hoodie.combine.before.delete", "delete_keys"),
        ],
    )
    def test_keys_begin_commit_without_combining(
        self, option: str, operation: Operation, table: pyhudi.HudiTable
    ) -> None:
        other = pyhudi.open_table(table.uri, options={option: False})
        calls: list[Call] = [(operation, TABLE.rows(ids)) for ids in ("a", "b", "ca")]
        assert combinable(other, calls) == 2
        assert combinable(table, calls) == 3

    def test_rule_that_differs_within_data_keeps_keys_apart(self, tmp_path: Path) -> None:
        """The class keeps the maximum ordering value within the data, otherwise the later row."""
        table = pyhudi.create_table(
            tmp_path / "t",
            TABLE.schema,
            key="id",
            order_by="ts",
            version=6,
            options={
                "hoodie.datasource.write.payload.class": (
                    "org.apache.hudi.common.model.PartialUpdateAvroPayload"
                ),
                **SMALL,
            },
        )
        assert combinable(table, upserts("a", "b")) == 2
        assert combinable(table, upserts("a", "a")) == 1


KINDS: tuple[Literal["cow", "mor"], ...] = ("cow", "mor")
INDEXES = ("SIMPLE", "GLOBAL_SIMPLE", "RECORD_INDEX")
ORDERS = ("ts", None)


def random_calls(seed: int) -> list[Call]:
    """Few keys, some of them in two partitions, with late rows, nulls and deletes."""
    choose = random.Random(seed)

    def rows() -> pa.Table:
        ids = [choose.choice("abcdefgh") for _ in range(choose.randint(1, 4))]
        moved = choose.random() < 0.2
        return pa.table(
            {
                "id": ids,
                "city": ["oslo" if moved and choose.random() < 0.5 else "rome" for _ in ids],
                "ts": pa.array([choose.choice([None, -1, 0, 1, 2, 3]) for _ in ids], pa.int64()),
                "v": [choose.randrange(1000) for _ in ids],
                IS_DELETED: [choose.random() < 0.1 for _ in ids],
            },
            schema=WITH_DELETES.schema,
        )

    calls: list[Call] = []
    for _ in range(25):
        operation: Operation = "upsert" if choose.random() < 0.9 else "delete_keys"
        calls.append((operation, rows().column("id") if operation == "delete_keys" else rows()))
    return calls


def rows_of(table: pyhudi.HudiTable) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.scan().to_arrow().to_pylist()
    return sorted(rows, key=lambda row: (row["id"], row["city"], row["v"]))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pyhudi.PartitionChangeWarning")
@pytest.mark.parametrize(
    ("version", "kind", "index", "order_by"), pairwise((6, 8, 9), KINDS, INDEXES, ORDERS)
)
def test_group_commit_leaves_rows_of_single_commits(
    version: int, kind: Literal["cow", "mor"], index: str, order_by: str | None, tmp_path: Path
) -> None:
    for seed in range(2):
        options = {
            **SMALL,
            "hoodie.index.type": index,
            "hoodie.metadata.enable": index == "RECORD_INDEX",
        }
        single, grouped = (
            WITH_DELETES.make(
                tmp_path / f"{name}{seed}",
                version=version,
                kind=kind,
                order_by=order_by,
                options=options,
            )
            for name in ("single", "grouped")
        )
        calls = random_calls(seed)
        for operation, data in calls:
            getattr(single, operation)(data)
        with grouped.writer(max_seconds=60) as writer:
            for operation, data in calls:
                getattr(writer, operation)(data)
        assert rows_of(grouped) == rows_of(single), f"seed {seed}"
        assert len(grouped.history()) < len(single.history())


def test_group_insert_leaves_duplicates_of_single_inserts(tmp_path: Path) -> None:
    calls = [TABLE.rows(ids, v=v) for v, ids in enumerate(["ab", "cd", "ae", "f", "af"])]
    for policy, count in (("none", 9), ("drop", 6)):
        options = {"hoodie.datasource.insert.dup.policy": policy}
        single, grouped = (
            TABLE.make(tmp_path / f"{name}-{policy}", options=options) for name in ("one", "all")
        )
        for rows in calls:
            single.insert(rows)
        with grouped.writer(max_seconds=60) as writer:
            for rows in calls:
                writer.insert(rows)
        assert rows_of(grouped) == rows_of(single)
        assert grouped.count() == count


def test_commit_ids_have_the_form_of_one_id_alone() -> None:
    prefix = "pyhudi.commit.metadata."
    assert with_commit_ids({"a": "b"}, []) == {"a": "b"}
    assert with_commit_ids({}, ["one"]) == {f"{prefix}{COMMIT_ID}": "one"}
    several = with_commit_ids({}, ["one", 'two"'])
    entries = {name.removeprefix(prefix): value for name, value in several.items()}
    assert json.loads(entries[COMMIT_IDS]) == ["one", 'two"']
    assert commit_ids(entries, "it") == {"one", 'two"'}
    assert commit_ids({COMMIT_ID: "three"}, "it") == {"three"}
    assert commit_ids({}, "it") == frozenset()


@pytest.mark.parametrize("text", ["{", '"one"', "[1]"])
def test_damaged_commit_ids_name_the_commit(text: str) -> None:
    with pytest.raises(CorruptTable, match="commit 7: _pyhudi_commit_ids"):
        commit_ids({COMMIT_IDS: text}, "commit 7")
