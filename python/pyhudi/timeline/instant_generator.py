"""New instant times for one table: always later than anything on its timeline.

Hudi 1.x orders commits by completion time and needs requested < completed, unique completion times,
and every request later than the completions before it. One generator that has observed the timeline
ensures that for the writer that holds the table's lock.
"""

from __future__ import annotations

from pyhudi.clock import INSTANT_DIGITS, Clock, Zone, format_instant, parse_instant
from pyhudi.errors import ConfigError
from pyhudi.timeline.active import Timeline


class InstantGenerator:
    """Strictly increasing 17-digit instants in one zone. Belongs to one writer."""

    def __init__(self, clock: Clock, zone: Zone) -> None:
        self._clock = clock
        self._zone = zone
        self._last = ""

    def observe(self, timeline: Timeline) -> None:
        """Make later instants greater than every time on the timeline."""
        self._last = max(self._last, timeline.latest_time() or "")

    def next(self) -> str:
        """Return the next instant: the clock's time, or 1 ms after the last one if the clock lags.

        If the clock lags by less than a second, it waits, so that instants stay close to real time.
        It does not wait for a larger lag, which the fast clock of another writer can cause.
        """
        now = self._now()
        if now <= self._last:
            self._wait_for(_following(self._last))
            now = max(self._now(), _following(self._last))
        self._last = now
        return now

    def _now(self) -> str:
        return format_instant(self._clock.now_ms(), self._zone)

    def _wait_for(self, instant: str) -> None:
        try:
            wait_ms = parse_instant(instant, self._zone) - self._clock.now_ms()
        except ConfigError:
            return
        if 0 < wait_ms <= _LONGEST_WAIT_MS:
            self._clock.sleep(wait_ms / 1000)


_LONGEST_WAIT_MS = 1000


def _following(instant: str) -> str:
    """Return the first 17-digit instant that is greater than `instant` as a string."""
    try:
        moment = parse_instant(instant, "UTC")
    except ConfigError:
        return str(int(instant[:INSTANT_DIGITS]) + 1).zfill(INSTANT_DIGITS)
    return format_instant(moment + 1, "UTC")
