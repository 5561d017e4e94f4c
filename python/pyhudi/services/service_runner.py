"""The runner of services with plans: it executes pending plans, then creates one and executes it.

Compaction, log compaction and clustering of a data table are such services.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from pyhudi.services.result import ServiceResult
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.txn.planned_services import NewPlan, after_commit, schedule


@dataclass(frozen=True)
class ServiceRequest:
    """The arguments of one call that all services with plans have."""

    schedule: bool = True
    """Create a new plan."""
    execute: bool = True
    """Execute plans, including pending ones."""


def run_service(
    table: TableSnapshot,
    name: str,
    action: str,
    request: ServiceRequest,
    pending: Iterable[str],
    plan: Callable[[TableSnapshot, str], NewPlan],
    execute: Callable[[ServiceResult, TableSnapshot, str], ServiceResult],
) -> ServiceResult:
    """Execute pending plans, then create a new one and execute it.

    table: recovered from failed writers. name: see `ServiceResult.service`. pending: instants of
    the plans to execute. plan: see `schedule`. execute: executes the plan of an instant and adds
    that to a result.
    """
    began_ms = table.clock.ticks_ms()
    result = ServiceResult(name)
    for instant in pending if request.execute else ():
        result = execute(result, table.reload(), instant)
        table = after_commit(table)
    if request.schedule:
        planned, reason = schedule(table, action, plan)
        result = result.skipping(reason)
        if planned and request.execute:
            result = execute(result, table.reload(), planned)
        elif planned:
            result = replace(result, scheduled=(planned,))
    return replace(result, duration_ms=table.clock.ticks_ms() - began_ms)
