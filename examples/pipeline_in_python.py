"""What a TOML file cannot say, in Python: a stream enriched by a table, and written to another stream.

Written like a notebook: each block stands for a cell.

    PENSTOCK_URL=redis://127.0.0.1:6379 python examples/pipeline_in_python.py
"""

# %% A session. `build_session` makes a quiet local one; `register` makes the source known to any other.
import os
import tempfile

from pyspark.sql import functions as F  # noqa: N812

from penstock.spark import build_session, read_stream, register, write_stream

spark = build_session("orders in Python", master=os.environ.get("SPARK_MASTER", "local[2]"))
register(spark)

url = os.environ.get("PENSTOCK_URL", "redis://127.0.0.1:6379")
checkpoint = os.environ.get("CHECKPOINT") or tempfile.mkdtemp(prefix="orders-")

# %% The stream, typed. `_corrupt` has what did not parse.
orders = read_stream(
    spark,
    url=url,
    stream="orders",
    startingOffsets="earliest",
    schema="_id string, sku string, qty int, price decimal(10,2), _corrupt map<string,string>",
)

# %% A join with a table, which the TOML of a pipeline has no words for.
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

# %% Into another stream, exactly once: run it again with the same checkpoint, and it goes on.
query = write_stream(parcels, checkpoint, url=url, stream="parcels")
try:
    query.processAllAvailable()
finally:
    query.stop()

# %% A batch reads the same streams: how many parcels are there now?
written = spark.read.format("penstock").options(url=url, stream="parcels").load()
print(f"{written.count()} parcels")
