"""A worker process.

attempts   runs a handler for the entries of one attempt, and says how it ended
execution  where attempts run: an event loop, threads, child processes
children   child processes that run a handler
gate       lets one suspect run alone in the process
lane       the threads of one stream: take, run, settle
bell       waits for new entries, so that a lane can wait for other things too
schedule   sends the entries of `@app.every`
worker     Worker: all lanes, renewal of leases, stop
metrics    Prometheus's text format on a port
processes  `penstock worker --processes` and `--reload`: several workers, restarted when they die
"""
