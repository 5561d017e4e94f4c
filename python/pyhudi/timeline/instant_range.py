"""Ranges of time on a timeline, and the instants that they contain. No I/O."""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.config.actions import Instant


@dataclass(frozen=True)
class InstantRange:
    """The instants after one time and up to another; None is open. Times compare as strings."""

    after: str | None = None
    """Exclusive; None from the beginning."""
    until: str | None = None
    """Inclusive; None to the end."""
    by_completion: bool = False
    """The times are completion times (else: requested times)."""

    @classmethod
    def between(cls, first: str, last: str, *, by_completion: bool = False) -> InstantRange:
        """Return the range of times from the first to the last, both inclusive."""
        return cls(str(int(first) - 1).zfill(len(first)), last, by_completion)

    def contains(self, instant: Instant) -> bool:
        """Return whether an instant is in the range; without that time it is in no range."""
        time = self.time_of(instant)
        if time is None:
            return False
        return (self.after is None or time > self.after) and (
            self.until is None or time <= self.until
        )

    def time_of(self, instant: Instant) -> str | None:
        """Return the time of an instant that the range compares."""
        return instant.completed if self.by_completion else instant.requested
