from __future__ import annotations

from pathlib import Path

import pytest

from pyhudi.errors import UnsupportedTableFeature
from pyhudi.slices import markers
from pyhudi.slices.markers import Marker
from pyhudi.storage.storage import Storage

TIME = "20240101000000000"
BASE = Marker("a/b", "f-0_0-1-0_20240101000000000.parquet", "CREATE")
LOG = Marker("", ".f-0_20240101000000000.log.1_0-1-0", "APPEND")


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage(str(tmp_path))


def test_direct_markers_are_empty_files_named_by_data_file_and_kind(storage: Storage) -> None:
    for marker in (BASE, LOG, BASE):
        markers.create(storage, TIME, marker)
    files = storage.list(f".hoodie/.temp/{TIME}")
    assert [file.path for file in files] == [
        f".hoodie/.temp/{TIME}/{LOG.name}.marker.APPEND",
        f".hoodie/.temp/{TIME}/a/b/{BASE.name}.marker.CREATE",
    ]
    assert {file.size for file in files} == {0}
    assert markers.read_all(storage, TIME) == [LOG, BASE]
    assert markers.instants_with_markers(storage) == [TIME]
    markers.delete_all(storage, TIME)
    assert markers.read_all(storage, TIME) is None


def test_batched_markers_of_the_timeline_server_are_read(storage: Storage) -> None:
    folder = f".hoodie/.temp/{TIME}"
    storage.put(f"{folder}/MARKERS.type", b"TIMELINE_SERVER_BASED")
    storage.put(f"{folder}/MARKERS0", f"a/b/{BASE.name}.marker.CREATE\n".encode())
    storage.put(f"{folder}/MARKERS5", f"/{LOG.name}.marker.APPEND\n".encode())
    assert markers.read_all(storage, TIME) == [LOG, BASE]


@pytest.mark.parametrize("folder", [" osaka", "a\u2028b", "\x0bx", "b "])
def test_names_in_batches_are_taken_as_they_are(storage: Storage, folder: str) -> None:
    """Java ends lines at a line feed, a carriage return, and nowhere else."""
    temporary = f".hoodie/.temp/{TIME}"
    storage.put(f"{temporary}/MARKERS.type", b"TIMELINE_SERVER_BASED")
    lines = f"{folder}/{BASE.name}.marker.CREATE\r\n{LOG.name}.marker.APPEND\n"
    storage.put(f"{temporary}/MARKERS0", lines.encode())
    found = markers.read_all(storage, TIME)
    assert set(found or ()) == {LOG, Marker(folder, BASE.name, "CREATE")}


def test_markers_of_an_unknown_form_are_refused(storage: Storage) -> None:
    storage.put(f".hoodie/.temp/{TIME}/MARKERS.type", b"CLOUD")
    with pytest.raises(UnsupportedTableFeature, match="CLOUD"):
        markers.read_all(storage, TIME)


def test_side_files_are_no_markers(storage: Storage) -> None:
    markers.create(storage, TIME, BASE)
    storage.put(f".hoodie/.temp/{TIME}/a/b/.{BASE.name}.marker.CREATE.crc", b"crc")
    assert markers.read_all(storage, TIME) == [BASE]
