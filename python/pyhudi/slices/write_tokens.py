"""Write tokens that identify a write, for log file names that do not."""

from __future__ import annotations

from pyhudi.engine.protocol import Attempt

_ATTEMPTS = 10_000
"""Numbers of one write in `token_of_write`."""


def token_of_write(attempt: Attempt, instant: str) -> str:
    """Return a write token that no other write has, for names without their own instant.

    A writer that rolls its files back must not delete those of a writer that chose the same
    version. The token is three numbers of 32 bits, as Hudi reads them (`FSUtils.LOG_FILE_PATTERN`,
    0.15.0).
    """
    of_write = _number_of(instant) * _ATTEMPTS + attempt.attempt % 9_973
    return f"{attempt.task}-{attempt.stage}-{of_write}"


def may_be_token_of(token: str, instant: str) -> bool:
    """Return whether a token may come from `token_of_write` for a write: few others match."""
    number = token.rsplit("-", 1)[-1]
    return number.isdecimal() and int(number) // _ATTEMPTS == _number_of(instant)


def _number_of(instant: str) -> int:
    return int(instant[8:17]) % 214_000
