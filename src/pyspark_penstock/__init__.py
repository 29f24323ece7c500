"""Where Spark finds the data source "penstock" by itself: it imports every top-level module named pyspark_*."""

from penstock.spark.source import PenstockSource as DefaultSource

__all__ = ["DefaultSource"]
