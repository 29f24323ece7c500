"""Where Spark finds the data source "penstock" by itself: in a top-level module named pyspark_*."""

from penstock.spark.source.data_source import PenstockSource as DefaultSource

__all__ = ["DefaultSource"]
