"""Steps of a planned DataFrame, to be repeated on a narrower read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyhudi.spark.scan_frame import set_plan_id
from pyhudi.spark.source_filters import FilterTuple

Names = frozenset[str]


@dataclass(frozen=True)
class Step:
    """One step of a frame, to be repeated on a narrower one."""

    kind: str
    given: tuple[Any, ...]
    names: tuple[str, ...]
    """Columns of a select, or columns that a filter uses."""
    pushed: tuple[FilterTuple, ...] = ()
    exact: bool = True
    """Whether the pushed filters are the whole condition."""
    plan_id: int | None = None

    def on(self, frame: Any, have: Names) -> Any:
        """Apply the step to a frame with some of the columns."""
        if self.kind == "filter":
            result = frame.filter(*self.given)
        else:
            pairs = zip(self.names, self.given, strict=True)
            result = frame.select(*[given for name, given in pairs if name in have])
        if self.plan_id is not None:
            set_plan_id(result, self.plan_id)
        return result


def replay(frame: Any, steps: Sequence[Step], have: Names) -> Any:
    """Return the frame with the steps on top of it. have: the columns that it has."""
    for step in steps:
        frame = step.on(frame, have)
    return frame
