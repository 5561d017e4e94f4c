"""A scan whose files a cleaner takes says so; a file that nobody was free to take is damage."""

from __future__ import annotations

from pathlib import Path

import pytest

import pyhudi
from pyhudi.errors import HistoryUnavailable, MissingFile
from tests.unit.test_savepoints import made, people


@pytest.mark.parametrize("version", [6, 9])
def test_a_cleaner_was_faster(tmp_path: Path, version: int) -> None:
    table = made(tmp_path / "t", version, "cow")
    first = table.inspect.commits()["requested"][0].as_py()
    scan, then = table.scan(), pyhudi.open_table(table.uri, as_of=first)
    other = pyhudi.open_table(table.uri, options={"hoodie.clean.automatic": False})
    for v in range(3, 6):
        other.upsert(people(range(4), v))
    assert scan.to_arrow().num_rows == 4
    other.clean(retain=1)
    with pytest.raises(HistoryUnavailable, match=r"clean .* has removed files of the moment"):
        scan.to_arrow()
    with pytest.raises(HistoryUnavailable):
        then.scan().to_arrow()
    assert table.refresh().scan().to_arrow().num_rows == 4


def test_a_file_that_is_gone_is_damage(tmp_path: Path) -> None:
    table = made(tmp_path / "t", 9, "cow")
    scan = table.scan()
    scan.plan()
    for file in (tmp_path / "t" / "rome").glob("*.parquet"):
        file.unlink()
    with pytest.raises(MissingFile):
        scan.to_arrow()
