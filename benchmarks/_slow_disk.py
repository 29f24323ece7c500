"""Runs a server whose fsync takes some ms longer: `python _slow_disk.py MS PORT DIR`."""

from __future__ import annotations

import sys

from penstock.persist.watched_disk import slow_disk
from penstock.server import app
from penstock.server.config import directives

delay_ms, port, folder = sys.argv[1:]
config = directives.default_config()
for name, value in (("port", port), ("dir", folder), ("auto-aof-rewrite-percentage", "0")):
    config.set_at_start(name, value)
sys.exit(0 if app.run(config, slow_disk(int(delay_ms) / 1000)) else 1)
