"""Metrics of a worker in Prometheus's text format, on a port of this machine."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

from penstock.errors import ConfigError

if TYPE_CHECKING:
    from penstock.work.running.worker import Worker


def text_of(worker: Worker) -> str:
    """The metrics now."""
    lines = ["# TYPE penstock_work_outcomes_total counter"]
    for stream, outcome, count in worker.outcome_counts():
        labels = f'stream="{_escaped(stream)}",outcome="{outcome}"'
        lines.append(f"penstock_work_outcomes_total{{{labels}}} {count}")
    lines.append("# TYPE penstock_work_held gauge")
    for stream, held in worker.held_counts():
        lines.append(f'penstock_work_held{{stream="{_escaped(stream)}"}} {held}')
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


class MetricsServer:
    """Answers GET /metrics until it is closed."""

    def __init__(self, worker: Worker, port: int) -> None:
        """Raises: ConfigError if the port is in use."""

        class Answer(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = text_of(worker).encode()
                self.send_response(200 if self.path == "/metrics" else 404)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.end_headers()
                if self.path == "/metrics":
                    self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Requests are not logged."""

        try:
            self._server = ThreadingHTTPServer(("127.0.0.1", port), Answer)
        except OSError as error:
            raise ConfigError(f"cannot serve metrics on port {port}: {error}") from None
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
