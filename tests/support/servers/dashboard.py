"""Runs `penstock ui`, and finds a Chromium to open it with."""

from __future__ import annotations

import os
import shutil
import signal
import ssl
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.servers.penstock_server import penstock_command
from tests.support.servers.redis_server import free_port

START_SECONDS_MAX = 60.0
END_SECONDS_MAX = 20.0
NO_CHROMIUM = "no chromium on PATH: see tools/provide-chromium.sh"

# In CI it runs as root and without a screen. It must not contact any host of Google.
CHROMIUM_OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]


@dataclass(frozen=True, slots=True)
class Dashboard:
    """A running dashboard."""

    process: subprocess.Popen[bytes]
    port: int
    log_path: Path
    scheme: str

    @property
    def address(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def log(self) -> str:
        return self.log_path.read_text()


def chromium_or_none() -> str | None:
    """The path of Chromium, if there is one on PATH."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


@contextmanager
def running_dashboard(url: str, *arguments: str, **environment: str) -> Iterator[Dashboard]:
    """Start `penstock ui` for a server, on a free port, and stop it afterwards."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="penstock-ui-") as folder:
        log_path = Path(folder, "ui.log")
        with log_path.open("wb") as output:
            process = subprocess.Popen(
                [*penstock_command("ui"), "--url", url, "--port", str(port), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                env=_environment() | environment,
            )
        scheme = "https" if "--tls-cert-file" in arguments else "http"
        dashboard = Dashboard(process, port, log_path, scheme)
        try:
            _wait_until_ready(dashboard)
            yield dashboard
        finally:
            _end(process)


def _environment() -> dict[str, str]:
    """Our environment, without the variable that puts NiceGUI into its test mode."""
    return {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}


def _wait_until_ready(dashboard: Dashboard) -> None:
    deadline = time.monotonic() + START_SECONDS_MAX
    anyone = ssl.create_default_context()  # here it matters only whether there is an answer
    anyone.check_hostname, anyone.verify_mode = False, ssl.CERT_NONE
    context = anyone if dashboard.scheme == "https" else None
    while dashboard.process.poll() is None and time.monotonic() < deadline:
        try:
            address = f"{dashboard.address}/streams"
            urllib.request.urlopen(address, timeout=10, context=context).close()
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError(f"penstock ui does not start:\n{dashboard.log()}")


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(timeout=END_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
