"""Lets Spark find the data source "penstock" without a call of `register`.

Spark searches the Python of its workers for top-level modules named pyspark_* with a `DefaultSource`. An
import error here would end that search, also for the sources of other packages, so it only warns.
"""

import warnings

try:
    from penstock.spark.source.data_source import PenstockSource as DefaultSource
except ImportError as error:
    warnings.warn(f"the data source penstock is not available: {error}", stacklevel=1)
else:
    __all__ = ["DefaultSource"]
