"""Makes `spark.sql` of a session run the statements of `pyhudi.spark.sql`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import wraps
from types import TracebackType
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from pyhudi.config import argument_checks as arg
from pyhudi.config.options import check_options
from pyhudi.spark.registration import register_source
from pyhudi.spark.sql_runner import SqlRunner
from pyhudi.spark.sql_tables import ENABLED, TableLocation, spark_sql


@arg.check_arguments()
def enable_sql(
    spark: SparkSession,
    *,
    storage_options: Mapping[str, str] | None = None,
    options: Mapping[str, object] | None = None,
) -> EnabledSql:
    """Let `spark.sql` of this session run the statements of `pyhudi.spark.sql` on Hudi tables.

    Spark gets all other statements unchanged. The change is one of this Python object: sessions of
    `spark.newSession()` do not have it.

    On PySpark 4, `CREATE TABLE ... USING hudi` then adds the table to Spark's catalog, so that
    SHOW TABLES lists it and other sessions with the same catalog find it. The formats "pyhudi" and
    "hudi" are registered, as by `register_source`, so that views in the catalog can read it.

    `args` and keyword arguments of `spark.sql` work in queries. In statements that pyhudi runs
    itself they raise `UnsupportedTableFeature`.

    Args:
        spark: a session, as for `pyhudi.spark.sql`.
        storage_options: access to the storage of tables that are not registered, as in
            `pyhudi.open_table`.
        options: `hoodie.…` options of tables that are not registered.

    Returns:
        An object to undo the change: by its method `disable`, or at the end of a `with` block. A
        change of an earlier call is then in force again.
    """
    check_options(options)
    if hasattr(spark, "dataSource"):
        register_source(spark, hudi=True)
    settings = TableLocation("", storage_options, options)
    calls = ENABLED.setdefault(spark, [])
    calls.append(settings)

    @wraps(type(spark).sql)
    def sql(sqlQuery: str, args: Any = None, **kwargs: Any) -> DataFrame:  # noqa: N803 - Spark's name
        if not isinstance(sqlQuery, str):
            return spark_sql(spark, sqlQuery, args, **kwargs)
        return SqlRunner(spark, calls[-1], on_session=True).run(sqlQuery, args, kwargs)

    spark.sql = sql
    return EnabledSql(spark, settings)


class EnabledSql:
    """The change of a session by one call of `enable_sql`; a context manager that undoes it."""

    def __init__(self, spark: SparkSession, settings: TableLocation) -> None:
        self._spark = spark
        self._settings = settings

    def __enter__(self) -> EnabledSql:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.disable()

    def disable(self) -> None:
        """Undo the change. A second call does nothing."""
        calls = ENABLED[self._spark]
        calls[:] = [settings for settings in calls if settings is not self._settings]
        if not calls:
            vars(self._spark).pop("sql", None)
