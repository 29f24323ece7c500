"""Local properties that Spark sets on every job and task of a streaming query."""

QUERY_ID = "sql.streaming.queryId"
BATCH_ID = "streaming.sql.batchId"
