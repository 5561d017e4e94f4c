"""Errors of Spark tasks as they were raised: the same types, messages and fields on the driver.

Spark transfers only the text of an exception. A task ends with the error's type and message, and a
line of details in JSON, from which the driver creates the error again. PySpark converts exceptions
of a session in one function for classic sessions and in one for Spark Connect.
`convert_task_errors` wraps both, so that actions of lazy DataFrames, which only PySpark runs, raise
what other engines raise. All other exceptions of Spark stay as they are.
"""

from __future__ import annotations

import importlib
import json
import re
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from typing import Any

from pyspark.sql import SparkSession

from pyhudi.errors import HudiError
from pyhudi.spark.executor_environment import find_environment_error
from pyhudi.txn.late_files import removing_late_files

_DETAILS = re.compile(r"\nDetails: (\{[^\n]*\})")
_NOTE = "In a Spark task on "
_LOST = re.compile(r"Python worker exited unexpectedly|ExecutorLostFailure[^\n]*")
_FAILED = re.compile(r"Task \d+ in stage [\d.]+ failed \d+ times")


class TaskFailedError(Exception):
    """The failure of a task on an executor, in one line: the cause of the task's error."""


@contextmanager
def wrap_exceptions() -> Iterator[None]:
    """In a Python worker of Spark: raise exceptions of the block with details for the driver.

    Other processes raise them as they are. The text of a `HudiError` has no traceback, because its
    message says what to do.
    """
    try:
        yield
    except Exception as error:  # noqa: BLE001 - also errors of a user's functions
        if not _is_worker():
            raise
        failure = _with_details(error)
        if isinstance(error, HudiError):
            sys.tracebacklimit = 0  # Spark ends the process after an exception
        trace = error.__traceback__
        raise failure.with_traceback(trace and trace.tb_next) from None


@contextmanager
def run_task() -> Iterator[None]:
    """Run a task that may write files: as `wrap_exceptions`, and without late files."""
    with wrap_exceptions(), removing_late_files():
        yield


@contextmanager
def raise_original() -> Iterator[None]:
    """On the driver: raise the task's exception, whose cause says in one line which task failed.

    Raises `HudiError` if Spark lost the process of a task.
    """
    try:
        yield
    except Exception as error:
        text = str(error)
        original = error if is_task_error(error) else original_error(text)
        original = original or find_environment_error(text)
        if original is not None:
            raise original from TaskFailedError(_describe_failure(original, text))
        lost = _LOST.search(text)
        if lost is None:
            raise
        message = f"Spark lost the process of a task: {lost[0].strip()}"
        hint = "Read the executor's log. If memory ran out, raise spark.executor.memoryOverhead."
        raise HudiError(message, hint=hint) from TaskFailedError(_describe_failure(error, text))


def convert_task_errors(spark: SparkSession) -> None:
    """Let sessions of this kind raise errors of pyhudi's tasks as they are; can be called again."""
    module = sys.modules.get(
        _CONNECT if type(spark).__module__.startswith("pyspark.sql.connect") else _CLASSIC
    )
    convert = getattr(module, "convert_exception", None)
    if convert is not None and not hasattr(convert, "__wrapped__"):
        module.convert_exception = _converting(convert)  # type: ignore[union-attr]


_CLASSIC = "pyspark.errors.exceptions.captured"
_CONNECT = "pyspark.sql.connect.client.core"


def is_task_error(error: BaseException) -> bool:
    """Return whether PySpark has raised this error of a task instead of an exception of Spark."""
    notes = getattr(error, "__notes__", ())
    return any(str(note).startswith(_NOTE) for note in notes)


def original_error(text: str) -> Exception | None:
    """Return the error of a task from the text of Spark's exception; None if it has none."""
    match = _DETAILS.search(text)
    if match is None:
        return None
    end = match.start()
    try:
        details = json.loads(match[1])
        name, host = details.pop("error"), details.pop("host")
        error_class = _find_class(name)
        start = text.find(f"{_name_in_traceback(error_class)}: ")
        message, hint = _split_hint(text[start:end].split(": ", 1)[-1])
        args = tuple(details.pop("args", (message,)))
        error = error_class.__new__(error_class, *args)
    except (ValueError, KeyError, ImportError, AttributeError, TypeError):
        return None
    is_own = isinstance(error, HudiError)
    error.args = args
    error.__dict__.update({"hint": hint} if is_own else {}, **details)
    # The traceback of a user's function says where it failed; a `HudiError` has none.
    trace = "" if is_own else f":\n{text[text.find(_TRACEBACK) : end].strip()}"
    error.__notes__ = [*details.get("__notes__", ()), f"{_NOTE}{host}{trace}"]  # type: ignore[attr-defined]
    return error


_TRACEBACK = "Traceback (most recent call last):"


def _with_details(error: Exception) -> Exception:
    """Return an exception that is printed like the error, with a line of details after it."""
    error_class = type(error)
    name = f"{error_class.__module__}.{error_class.__qualname__}"
    details: dict[str, Any] = {"error": name, "host": socket.gethostname(), **vars(error)}
    message, hint = _split_hint(str(error))
    if isinstance(error, HudiError) and (message, hint) == (error.args[0], error.hint):
        del details["hint"]
    else:
        details["args"] = error.args
    text = str(error)
    # Without details, the driver raises Spark's exception, with the type and the message.
    with suppress(TypeError, ValueError):
        text += f"\nDetails: {json.dumps(details)}"
    names = {"__module__": error_class.__module__, "__qualname__": error_class.__qualname__}
    failure: Exception = type(error_class.__name__, (Exception,), names)(text)
    return failure


def _split_hint(text: str) -> tuple[str, str]:
    message, _, hint = text.partition("\nHint: ")
    return message, hint


def _find_class(name: str) -> type[Exception]:
    """Return the class of an error. Raises if this process has no such class of exceptions."""
    module, _, class_name = name.rpartition(".")
    error_class: type[Exception] = getattr(importlib.import_module(module), class_name)
    if not issubclass(error_class, Exception):
        raise TypeError
    return error_class


def _name_in_traceback(error_class: type[Exception]) -> str:
    """Return the name of a class in a traceback."""
    module = error_class.__module__
    plain = module in {"builtins", "__main__"}
    return error_class.__qualname__ if plain else f"{module}.{error_class.__qualname__}"


def _is_worker() -> bool:
    """Return whether this process runs Python functions for Spark."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return spec is not None and spec.name.startswith("pyspark.")


def _describe_failure(error: Exception, text: str) -> str:
    failed = _FAILED.search(text)
    notes = [str(note) for note in getattr(error, "__notes__", ())]
    host = next((note for note in notes if note.startswith(_NOTE)), "A Spark task failed")
    return (failed[0] if failed else host).split(":", 1)[0]


def _converting(convert: Callable[..., Exception]) -> Callable[..., Exception]:
    @wraps(convert)
    def convert_exception(*args: Any, **kwargs: Any) -> Exception:
        converted = convert(*args, **kwargs)
        with suppress(Exception):  # PySpark asks the JVM for the text
            return original_error(str(converted)) or converted
        return converted

    return convert_exception
