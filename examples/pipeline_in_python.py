"""A pipeline in Python that a TOML file cannot express: joins a stream with a table, and writes to a stream.

Each block is a notebook cell.

    PENSTOCK_URL=redis://127.0.0.1:6379 python examples/pipeline_in_python.py
"""

# %% A session. `build_session` builds a quiet one; `register` adds the source to any other session.
import os
import tempfile

from pyspark.sql import functions as F  # noqa: N812

from penstock.spark import build_session, read_stream, register, write_stream

spark = build_session("orders in Python", master=os.environ.get("SPARK_MASTER", "local[2]"))
register(spark)

url = os.environ.get("PENSTOCK_URL", "redis://127.0.0.1:6379")
checkpoint = os.environ.get("CHECKPOINT") or tempfile.mkdtemp(prefix="orders-")

# %% The stream with types. `_corrupt` has the values that did not parse.
orders = read_stream(
    spark,
    url=url,
    stream="orders",
    startingOffsets="earliest",
    schema="_id string, sku string, qty int, price decimal(10,2), _corrupt map<string,string>",
)

# %% A join with a table, which a TOML pipeline does not support.
weights = spark.createDataFrame([("A1", 250), ("B7", 900)], "sku string, grams int")
parcels = (
    orders.where("_corrupt is null and qty > 0")
    .join(F.broadcast(weights), "sku", "left")
    .select(
        F.col("_id").alias("order"),
        "sku",
        (F.col("qty") * F.coalesce("grams", F.lit(500))).alias("grams"),
    )
)

# %% Write to another stream, exactly once. A second run with the same checkpoint continues from there.
query = write_stream(parcels, checkpoint, url=url, stream="parcels")
try:
    query.processAllAvailable()
finally:
    query.stop()

# %% Read the result as a batch, and count it.
written = spark.read.format("penstock").options(url=url, stream="parcels").load()
print(f"{written.count()} parcels")
