"""These tests need pyarrow, which the extra `spark` installs."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("pyarrow") else ["test_*.py"]
