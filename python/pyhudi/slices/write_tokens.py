"""Write tokens that tell a write, for names of log files that do not."""

from __future__ import annotations

from pyhudi.engine.protocol import Attempt

_ATTEMPTS = 10_000
"""Numbers of one write in `token_of_write`."""


def token_of_write(attempt: Attempt, instant: str) -> str:
    """A write token that no other write has, for names that do not tell the instant.

    Who takes its files back must not meet those of a writer that chose the same version. It is
    three numbers of 32 bits, as Hudi reads them (`FSUtils.LOG_FILE_PATTERN`, 0.15.0).
    """
    of_write = _number_of(instant) * _ATTEMPTS + attempt.attempt % 9_973
    return f"{attempt.task}-{attempt.stage}-{of_write}"


def may_be_token_of(token: str, instant: str) -> bool:
    """Whether `token_of_write` may have made a write token for a write: few others have it."""
    number = token.rsplit("-", 1)[-1]
    return number.isdecimal() and int(number) // _ATTEMPTS == _number_of(instant)


def _number_of(instant: str) -> int:
    return int(instant[8:17]) % 214_000
