"""Nothing here runs without pyarrow, which comes with the extra `spark`."""

from __future__ import annotations

import pytest

pytest.importorskip("pyarrow")
