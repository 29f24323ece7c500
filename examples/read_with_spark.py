"""Adds three orders to a stream and sums them up with Spark.

Start a server with `penstock serve`. Then run this file with any Python that has penstock[spark]; the virtual
environment need not be activated.
"""

import os

import redis
from pyspark.sql import SparkSession

import penstock.spark

url = os.environ.get("PENSTOCK_URL", "redis://127.0.0.1:6379")

client = redis.Redis.from_url(url)
for sku, qty in [("A1", 2), ("B7", 1), ("A1", 5)]:
    client.xadd("orders", {"sku": sku, "qty": qty})

spark = SparkSession.builder.master("local[2]").getOrCreate()
penstock.spark.register(spark)

orders = (
    spark.read.format("penstock")
    .option("url", url)
    .option("stream", "orders")
    .schema("_id string, _timestamp timestamp, sku string, qty int")
    .load()
)
orders.groupBy("sku").sum("qty").orderBy("sku").show()
spark.stop()
