# %% [markdown]
# # Orders in a notebook
#
# Each `# %%` starts a cell. VS Code and Spyder run them one by one; `jupytext --to ipynb notebook.py` makes a
# notebook of the file. As a script it runs from top to bottom:
#
#     PENSTOCK_URL=redis://127.0.0.1:6379 python examples/notebook.py

# %% A session. When this cell runs again, it returns the same one.
import os

import redis
from pyspark.sql import functions as F  # noqa: N812

from penstock.spark import build_session

url = os.environ.get("PENSTOCK_URL", "redis://127.0.0.1:6379")
spark = build_session("notebook", master="local[2]")

# %% Some orders, one each minute. Leave this cell out if your stream has entries.
client = redis.Redis.from_url(url)
client.delete("notebook:orders")
for minute, (sku, qty) in enumerate([("A1", 2), ("B7", 1), ("A1", 5), ("C3", 4), ("B7", 3)]):
    client.xadd(
        "notebook:orders", {"sku": sku, "qty": qty}, id=f"{1_700_000_000_000 + minute * 60_000}-0"
    )

# %% The stream as a DataFrame. Nothing is read yet.
orders = (
    spark.read.format("penstock")
    .options(url=url, stream="notebook:orders")
    .schema("_id string, _timestamp timestamp, sku string, qty int")
    .load()
)
orders.printSchema()

# %% A part of it. The server sends only these entries: see PushedFilters in the plan.
recent = orders.where("_timestamp >= timestamp'2023-11-14 22:14:20+00:00'")
recent.explain("formatted")
recent.show(truncate=False)

# %% A table, and a chart of text.
totals = recent.groupBy("sku").agg(F.sum("qty").alias("pieces")).orderBy("sku")
for row in totals.collect():
    print(f"{row.sku:4} {'#' * row.pieces} {row.pieces}")

# %% The result as a stream. With a writeId this cell can run again, and the rows are there once.
for _ in range(2):
    (
        totals.write.format("penstock")
        .mode("append")
        .options(url=url, stream="notebook:totals", writeId="totals-1")
        .save()
    )
print(f"{client.xlen('notebook:totals')} totals")

# %% `totals.toPandas()` and `totals.toArrow()` pass the rows to other libraries.
print(totals.toArrow().column_names)
client.close()
