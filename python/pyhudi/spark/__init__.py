"""Spark as an engine: the only package that imports pyspark.

Driver and executors need the pyhudi wheel and PySpark 3.5 or 4.x, and nothing else: no Hudi JAR.
"""

from pyhudi.spark.engine import SparkEngine
from pyhudi.spark.read import read, read_incremental

__all__ = ["SparkEngine", "read", "read_incremental"]
