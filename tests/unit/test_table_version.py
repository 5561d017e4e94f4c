"""Which table versions are known, and what tells them apart."""

from __future__ import annotations

import pytest

from pyhudi.config.table_version import table_version
from pyhudi.errors import UnsupportedTableFeature


@pytest.mark.parametrize("code", [6, 8, 9])
def test_written_versions(code: int) -> None:
    assert table_version(code).writable


@pytest.mark.parametrize("code", [4, 5])
def test_versions_that_are_only_read(code: int) -> None:
    version = table_version(code)
    assert not version.writable
    assert version.layout == table_version(6).layout


@pytest.mark.parametrize("code", [0, 3, 7, 10])
def test_other_versions_are_refused_by_name(code: int) -> None:
    with pytest.raises(
        UnsupportedTableFeature, match=rf"hoodie.table.version is {code}\b"
    ) as error:
        table_version(code)
    assert error.value.hint


def test_layouts() -> None:
    assert table_version(6).layout.folder == ".hoodie"
    assert table_version(8).layout.folder == ".hoodie/timeline"
    assert table_version(8).layout is table_version(9).layout


def test_log_marker_of_hudi_is_recognized() -> None:
    assert table_version(6).log_marker_type == "APPEND"
    assert table_version(8).log_marker_type == "CREATE"
