from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from pyhudi.config.timestamp_keygen_options import OLD_PREFIX, PREFIX
from pyhudi.errors import SchemaMismatch, UnsupportedTableFeature
from pyhudi.schema.timestamp_keygen import render_times, time_rules


def properties(kind: str, output: str = "yyyy/MM/dd", **more: str) -> dict[str, str]:
    named = {PREFIX + name.replace("_", "."): value for name, value in more.items()}
    return {PREFIX + "timestamp.type": kind, PREFIX + "output.dateformat": output, **named}


def rendered(
    values: pa.Array[Any], kind: str, output: str = "yyyy/MM/dd", **more: str
) -> list[str]:
    rules = time_rules(properties(kind, output, **more))
    return list(render_times(pa.chunked_array([values]), rules, "at").to_pylist())


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("UNIX_TIMESTAMP", 1_709_209_800),
        ("EPOCHMILLISECONDS", 1_709_209_800_999),
        ("EPOCHMICROSECONDS", 1_709_209_800_999_999),
    ],
)
def test_numbers_in_their_unit(kind: str, value: int) -> None:
    assert rendered(pa.array([value]), kind, "yyyyMMdd HH:mm", timezone="UTC") == ["20240229 12:30"]


def test_timestamp_keys_accept_every_number_type() -> None:
    day = dt.date(2024, 2, 29)
    scalar = {"timestamp_scalar_time_unit": "days", "timezone": "GMT"}
    for values in (
        pa.array([19_782], pa.int32()),
        pa.array([19_782.9]),
        pa.array([Decimal("19782.50")]),
        pa.array([day]),
    ):
        assert rendered(values, "SCALAR", **scalar) == ["2024/02/29"]
    moment = pa.array([1_709_247_600_000_000]).cast(pa.timestamp("us", "UTC"))
    assert rendered(moment, "EPOCHMICROSECONDS", timezone="GMT+8:00") == ["2024/03/01"]


def test_null_is_one_of_its_unit_and_microseconds_are_cut_towards_zero() -> None:
    values = pa.array([None, -1, -1001], pa.int64())
    texts = rendered(values, "EPOCHMICROSECONDS", "yyyyMMdd HHmmss.SSS", timezone="UTC")
    assert texts == ["19700101 000000.000", "19700101 000000.000", "19691231 235959.999"]


def test_texts_by_the_first_pattern_that_fits() -> None:
    values = pa.array(["2024-02-29", "20240301", None])
    more = {"input_dateformat": "yyyy-MM-dd, yyyyMMdd", "output_timezone": "UTC"}
    zoned = {**more, "input_timezone": "Asia/Kolkata"}
    assert rendered(values, "DATE_STRING", "yyyy/MM/dd HH", **zoned) == [
        "2024/02/28 18",
        "2024/02/29 18",
        "1969/12/31 18",
    ]
    with pytest.raises(UnsupportedTableFeature, match=r"input\.timezone"):
        rendered(values, "DATE_STRING", **more)
    with pytest.raises(SchemaMismatch, match="row 0"):
        rendered(pa.array(["29.2.2024"]), "MIXED", **zoned)


def test_texts_keep_their_own_offset_where_no_zone_is_given() -> None:
    more = {"input_dateformat": "yyyy-MM-dd'T'HHZ"}
    values = pa.array(["2024-02-29T23-0300", "2024-02-29T23Z", None])
    texts = rendered(values, "DATE_STRING", "yyyyMMddHH", **more)
    assert texts == ["2024022923", "2024022923", "1970010100"]
    texts = rendered(values, "DATE_STRING", "yyyyMMddHH", **more, output_timezone="UTC")
    assert texts == ["2024030102", "2024022923", "1970010100"]


def test_timestamp_keys_refuse_skipped_local_time() -> None:
    more = {"input_dateformat": "yyyy-MM-dd HH:mm", "timezone": "America/New_York"}
    assert rendered(pa.array(["2024-11-03 01:30"]), "DATE_STRING", "HH:mm", **more) == ["01:30"]
    with pytest.raises(SchemaMismatch, match="America/New_York"):
        rendered(pa.array(["2024-03-10 02:30"]), "DATE_STRING", **more)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"timestamp.type": "NANOS"}, "timestamp.type is NANOS"),
        ({"timestamp.type": ""}, "timestamp.type is not set"),
        ({"output.dateformat": ""}, "output.dateformat is not set"),
        ({"output.dateformat": "yyyy-MMM"}, "MMM"),
        ({"output.dateformat": "EEE"}, "EEE"),
        ({"output.dateformat": "yyyyZ"}, "support Z in a pattern"),
        ({"output.dateformat": "xxxx-ww"}, "xxxx"),
        ({"timezone": ""}, "output.timezone is not set"),
        ({"timezone": "PST"}, "timezone is PST"),
        ({"timezone": "GMT+25"}, r"timezone is GMT\+25"),
        ({"timezone": "Mars/Olympus"}, "timezone is Mars/Olympus"),
        ({"timestamp.type": "SCALAR", "timestamp.scalar.time.unit": "FORTNIGHTS"}, "FORTNIGHTS"),
        ({"timestamp.type": "DATE_STRING"}, "input.dateformat is not set"),
        (
            {"timestamp.type": "DATE_STRING", "input.dateformat": "yy-MM"},
            "input.dateformat is yy-MM",
        ),
    ],
)
def test_timestamp_keys_name_unsupported_pattern(change: dict[str, str], named: str) -> None:
    known = properties("EPOCHMILLISECONDS", timezone="UTC")
    changed = {**known, **{PREFIX + name: value for name, value in change.items()}}
    with pytest.raises(UnsupportedTableFeature, match=named):
        time_rules(changed)


def test_timestamp_keys_refuse_custom_parser() -> None:
    mine = {"hoodie.keygen.datetime.parser.class": "com.acme.Parser"}
    with pytest.raises(UnsupportedTableFeature, match=r"com\.acme\.Parser"):
        time_rules({**properties("EPOCHMILLISECONDS", timezone="UTC"), **mine})


def test_old_names_count() -> None:
    old = {
        name.replace(PREFIX, OLD_PREFIX): value
        for name, value in properties("EPOCHMILLISECONDS", timezone="UTC").items()
    }
    assert time_rules(old) == time_rules(properties("EPOCHMILLISECONDS", timezone="UTC"))


def test_quoted_text_in_patterns() -> None:
    values = pa.array([0])
    texts = rendered(values, "EPOCHMILLISECONDS", "'y='yyyy' o''clock'''", timezone="UTC")
    assert texts == ["y=1970 o'clock'"]


@pytest.mark.parametrize(
    ("values", "kind"), [(pa.array(["1"]), "EPOCHMILLISECONDS"), (pa.array([1]), "MIXED")]
)
def test_timestamp_keys_name_column_of_wrong_type(values: pa.Array[Any], kind: str) -> None:
    with pytest.raises(SchemaMismatch, match="'at'"):
        rendered(values, kind, timezone="UTC", input_dateformat="yyyy")
