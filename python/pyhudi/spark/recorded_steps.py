"""What was done to a planned DataFrame, to be done again on a narrower read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyhudi.spark.scan_frame import set_plan_id
from pyhudi.spark.source_filters import FilterTuple

Names = frozenset[str]


@dataclass(frozen=True)
class Step:
    """One thing that was done to a frame, to be done again on a narrower one."""

    kind: str
    given: tuple[Any, ...]
    names: tuple[str, ...]
    """Columns that are given out by a select, or that a filter looks at."""
    pushed: tuple[FilterTuple, ...] = ()
    exact: bool = True
    """Whether the pushed filters are all of the condition."""
    plan_id: int | None = None

    def on(self, frame: Any, have: Names) -> Any:
        """The step on a frame that was made of some columns."""
        if self.kind == "filter":
            made = frame.filter(*self.given)
        else:
            pairs = zip(self.names, self.given, strict=True)
            made = frame.select(*[given for name, given in pairs if name in have])
        if self.plan_id is not None:
            set_plan_id(made, self.plan_id)
        return made


def replay(frame: Any, steps: Sequence[Step], have: Names) -> Any:
    """The frame with the steps on top of it. have: the columns that it has."""
    for step in steps:
        frame = step.on(frame, have)
    return frame
