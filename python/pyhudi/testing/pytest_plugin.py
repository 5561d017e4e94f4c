"""The fixture `hudi_table`, for tests that name this module in `pytest_plugins`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyhudi import HudiTable


@pytest.fixture
def hudi_table() -> Iterator[Callable[..., HudiTable]]:
    """Return a function that creates tables, which are removed after the test.

    It takes the arguments of `pyhudi.testing.temporary_table`.
    """
    from pyhudi.testing.temporary_tables import temporary_table  # noqa: PLC0415 - pytest loads this early

    with ExitStack() as stack:

        def create(layout_or_data: Any, **arguments: Any) -> HudiTable:
            return stack.enter_context(temporary_table(layout_or_data, **arguments))

        yield create
