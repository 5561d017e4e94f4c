"""Runs dbt with a Spark session whose SQL changes Hudi tables: python run_dbt.py build."""

import sys

from dbt.cli.main import dbtRunner
from pyspark.sql import SparkSession

from pyhudi.spark import enable_sql

# dbt takes the session of the process, with a Hive metastore.
spark = SparkSession.builder.enableHiveSupport().getOrCreate()
enable_sql(spark)
result = dbtRunner().invoke(sys.argv[1:])
sys.exit(0 if result.success else 1)
