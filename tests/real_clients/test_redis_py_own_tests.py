"""redis-py's own tests of its stream methods, run against penstock.

They are in redis-py's source package, which pip downloads; where it cannot, the test is skipped.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import redis

from tests.support.campaign import cells
from tests.support.servers.penstock_server import running_penstock

DOWNLOAD_SECONDS_MAX = 120
RUN_SECONDS_MAX = 300
FILES = ["tests/test_commands.py", "tests/test_asyncio/test_commands.py"]
PASSED_MIN = 100
# Reasons to skip, by level: the test is about an older Redis, or about one that is newer than the level.
OLDER = r"Redis version required < 8\.2\.2"
NEWER = r"Redis version required >= 8\.([7-9]|\d\d)\.\d"
SKIPPED = {"8.6": f"{OLDER}|{NEWER}", "8.10": OLDER}


def pip(*arguments: str) -> None:
    """Run pip; skip the test if it cannot get what it needs."""
    command = [sys.executable, "-m", "pip", *arguments, "--quiet", "--disable-pip-version-check"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=DOWNLOAD_SECONDS_MAX, check=False
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"pip {arguments[-1]} takes too long")
    if done.returncode:
        pytest.skip(f"pip cannot get {arguments[-1]}: {done.stderr[-300:]}")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source package of the redis-py that is installed, and beside it the plugin that its tests need."""
    place = tmp_path_factory.mktemp("redis-py")
    wanted = f"redis=={redis.__version__}"
    pip("install", "--no-deps", f"--target={place / 'plugins'}", "pytest-asyncio>=1,<2")
    # Without an environment of its own for hatchling, which builds redis-py: that takes half a minute.
    pip(
        "download",
        "--no-deps",
        "--no-binary=:all:",
        "--no-build-isolation",
        f"--dest={place}",
        wanted,
    )
    package = next(place.glob("*.tar.gz"))
    subprocess.run(["tar", "-xzf", package.name], cwd=place, check=True)
    return next(place.glob("redis-*/"))


@pytest.mark.parametrize(
    ("level", "protocol"), cells([("8.6", 2), ("8.10", 3), ("8.6", 3), ("8.10", 2)])
)
def test_redis_py_passes_its_own_tests(
    source: Path, tmp_path: Path, level: str, protocol: int
) -> None:
    report = tmp_path / "report.xml"
    with running_penstock("--compat-version", level) as server:
        url = f"redis://127.0.0.1:{server.port}/0"
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *FILES]
        command += ["-k", "test_x or stream", f"--junitxml={report}"]
        command += ["--redis-url", url, "--redis-mod-url", url, "--protocol", str(protocol)]
        own = {name: text for name, text in os.environ.items() if not name.startswith("PYTEST_")}
        done = subprocess.run(
            command,
            cwd=source,
            env={**own, "PYTHONPATH": str(source.parent / "plugins")},
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS_MAX,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-1000:]
        assert "Traceback" not in server.log()
    cases = list(ElementTree.parse(report).getroot().iter("testcase"))
    reasons = [reason.get("message", "") for case in cases for reason in case.iter("skipped")]
    assert [reason for reason in reasons if not re.fullmatch(SKIPPED[level], reason)] == []
    assert len(cases) - len(reasons) >= PASSED_MIN
