"""Errors of first steps: each hint says what to do instead."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import HudiTable
from pyhudi.errors import (
    ConfigError,
    HistoryUnavailable,
    SchemaMismatch,
    StorageError,
    UnsupportedTableFeature,
)
from tests.helpers.table_builder import SMALL, TableBuilder

ROWS = TableBuilder(
    {
        "id": (pa.string(), str),
        "note": (pa.string(), "n"),
        "fare": (pa.float64(), 1.0),
        "at": (pa.timestamp("us"), 0),
    },
    options=SMALL,
    first="ab",
)
Use = Callable[[HudiTable], Any]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> HudiTable:
    return ROWS.make(tmp_path_factory.mktemp("hints") / "t")


@pytest.mark.parametrize(
    ("use", "error", "hint"),
    [
        (lambda t: t.scan(where="fare > 1 & id = 'a'"), ConfigError, "SQL says AND"),
        (lambda t: t.scan(where="(fare > 1) | (id = 'a')"), ConfigError, "SQL says AND"),
        (lambda t: t.scan(where="fare > 1 && id = 'a'"), ConfigError, "SQL says AND"),
        (
            lambda t: t.upsert(pa.table({"id": ["a"], "note": ["x"]})),
            SchemaMismatch,
            "partial=True",
        ),
        (lambda t: t.delete_keys("a"), ConfigError, r"Pass a list: \['a'\]"),
        (lambda t: t.delete_keys(7), ConfigError, r"Pass a list: \[7\]"),
        (lambda t: t.update({"note": "hello world"}), ConfigError, "text takes single quotes"),
        (
            lambda t: t.update("id = 'a'", {"note": "hello world"}),
            ConfigError,
            "\"'hello world'\"",
        ),
        (lambda t: t.scan(as_of="2001-01-01"), HistoryUnavailable, "in the zone UTC"),
        (lambda t: t.incremental(end="2001-01-01"), HistoryUnavailable, "in the zone UTC"),
    ],
)
def test_error_of_misuse_says_what_to_do(
    use: Use, error: type[pyhudi.HudiError], hint: str, table: HudiTable
) -> None:
    with pytest.raises(error, match=f"(?s)Hint: .*{hint}"):
        use(table)


def test_hint_of_a_timestamp_partition_helps_who_creates(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedTableFeature, match=r"timestamp\.type\": .* to create_table"):
        ROWS.make(tmp_path / "t", partition_by="at:timestamp")


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (
            lambda t: t.scan(filter="x"),
            r"scan\(\) has no argument 'filter'; .*Did you mean 'where', such as",
        ),
        (lambda t: t.scan(column=["id"]), r"column'; .*Did you mean 'columns'\?"),
        (lambda t: t.upsert(None, mode="x"), r"no argument 'mode'; it takes data, schema_mode, "),
        (lambda t: t.scan(1, 2, 3), r"scan\(\): too many positional arguments; it takes columns"),
        (lambda t: t.delete(), r"delete\(\): missing .* 'where'; it takes where, "),
        (
            lambda t: pyhudi.create_table(t.uri, ROWS.schema, primary_key="id"),  # type: ignore[call-arg]
            r"'primary_key'; .*Did you mean 'key'",
        ),
        (
            lambda t: pyhudi.create_table(t.uri, ROWS.schema, key="id", partition_cols="id"),  # type: ignore[call-arg]
            "Did you mean 'partition_by'",
        ),
    ],
)
def test_type_error_of_unknown_arguments_says_which_there_are(
    use: Use, words: str, table: HudiTable
) -> None:
    with pytest.raises(TypeError, match=f"(?s){words}"):
        use(table)


def test_bucket_without_credentials_says_how_to_give_them() -> None:
    said = "s3://b/t: Error performing PUT http://169.254.169.254/latest/api/token: timed out"
    assert "AWS_ACCESS_KEY_ID" in StorageError(said).hint
    assert StorageError(said, hint="Other.").hint == "Other."
    assert not StorageError("s3://b/t: 503 SlowDown").hint
