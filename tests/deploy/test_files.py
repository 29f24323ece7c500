"""The files of deploy/: what cannot run here is parsed, and compared with what penstock really offers."""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
import redis
import yaml
from prometheus_client.parser import text_string_to_metric_families
from typer.testing import CliRunner

from penstock.cli.main import app
from penstock.client.address import parse_url
from penstock.server.config.directives import default_config
from penstock.server.config.file import read_command_line
from tests.support.servers.penstock_server import running_penstock
from tests.support.servers.redis_server import free_port

DEPLOY = Path(__file__).parents[2] / "deploy"
UNITS = sorted(DEPLOY.glob("systemd/*"))
SECONDS_MAX = 30.0


def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    return found


def check_command(words: list[str]) -> None:
    """Check that penstock knows a command and its options."""
    name, *rest = words
    if name == "serve":
        if rest and not rest[0].startswith("--"):
            rest.pop(0)
        config = default_config()
        config.load(read_command_line(rest))
        assert not config.ignored_names()
        return
    known = CliRunner().invoke(app, [name, "--help"]).stdout
    for option in (word for word in rest if word.startswith("--")):
        assert option in known, f"penstock {name} has no {option}"


# --- Metrics ---------------------------------------------------------------------------------------------


def names_at(port: int) -> set[str]:
    connection = HTTPConnection("127.0.0.1", port, timeout=SECONDS_MAX)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    return {one.name for family in text_string_to_metric_families(text) for one in family.samples}


@pytest.fixture(scope="module")
def real_names(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """All names of a primary with a log, a replica and a group, and of that replica."""
    ports = free_port(), free_port()
    data = tmp_path_factory.mktemp("metrics") / "data"
    arguments = ("--metrics-port", str(ports[0]), "--repl-diskless-sync-delay", "0")
    with running_penstock(*arguments, data=data) as primary:
        client = primary.client()
        client.xadd("s", {"a": 1})
        client.xgroup_create("s", "g", "0")
        with pytest.raises(redis.ResponseError):
            client.xgroup_create("s", "g", "0")
        more = ("--metrics-port", str(ports[1]), "--replicaof", f"127.0.0.1 {primary.port}")
        with running_penstock(*more):
            deadline = time.monotonic() + SECONDS_MAX
            while "penstock_replica_lag_bytes" not in (found := names_at(ports[0])):
                assert time.monotonic() < deadline
                time.sleep(0.05)
            return found | names_at(ports[1])


def used_names(text: str) -> set[str]:
    return set(re.findall(r"\bpenstock_[a-z_]+", text))


# tests/workers/test_worker.py
WORKER = {f"penstock_work_{name}" for name in ("outcomes_total", "held", "attempt_seconds")}
WITH_TLS = {"penstock_tls_expiry_timestamp_seconds"}  # tests/server/net/test_tls.py
# tests/cli/test_pipeline_metrics.py
PIPELINE = {
    f"penstock_pipeline_{name}"
    for name in ("read_total", "late_total", "lag", "pending", "batch_seconds")
} | {"penstock_pipeline_last_batch_timestamp_seconds"}


def dashboard_names() -> set[str]:
    """The metrics of the dashboard, from the module that writes them."""
    return used_names((DEPLOY.parent / "src/penstock/web/metrics.py").read_text())


def test_the_alerts_use_real_metrics(real_names: set[str]) -> None:
    rules = yaml.safe_load((DEPLOY / "prometheus/alerts.yml").read_text())["groups"][0]["rules"]
    assert len({rule["alert"] for rule in rules}) == len(rules)
    for rule in rules:
        known = real_names | WORKER | PIPELINE | dashboard_names()
        assert used_names(rule["expr"]) <= known, rule["alert"]
        assert rule["labels"]["severity"] in ("page", "ticket")
        assert {"summary", "action"} == set(rule["annotations"])
        assert is_balanced(rule["expr"])


def test_a_server_that_became_a_replica_misses_no_replicas(real_names: set[str]) -> None:
    """After a failover the former primary has none, and keeps its metrics."""
    rules = yaml.safe_load((DEPLOY / "prometheus/alerts.yml").read_text())["groups"][0]["rules"]
    (rule,) = (rule for rule in rules if rule["alert"] == "PenstockReplicaGone")
    assert "penstock_replication_primary" in real_names
    assert rule["expr"].endswith(" and penstock_replication_primary == 1")


def test_the_grafana_board_uses_real_metrics(real_names: set[str]) -> None:
    board = json.loads((DEPLOY / "grafana/penstock.json").read_text())
    panels = board["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    expressions = [one["expr"] for panel in panels for one in panel.get("targets", [])]
    assert len(expressions) > 20
    for expression in expressions:
        assert used_names(expression)
        assert used_names(expression) <= real_names | WORKER, expression
        assert is_balanced(expression)
    assert used_names(json.dumps(board["templating"])) <= real_names
    places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}
    assert len(places) == len(panels), "two panels at one place"


def test_the_page_of_metrics_names_real_ones(real_names: set[str]) -> None:
    text = (DEPLOY.parent / "docs/metrics.md").read_text()
    bases = {re.sub(r"_(bucket|sum|count)$", "", name) for name in real_names}
    known = bases | real_names | WORKER | WITH_TLS | PIPELINE | dashboard_names()
    assert used_names(text) <= known


def is_balanced(expression: str) -> bool:
    return all(expression.count(a) == expression.count(b) for a, b in ("()", "[]", "{}"))


def test_prometheus_loads_the_alerts() -> None:
    settings = yaml.safe_load((DEPLOY / "prometheus/prometheus.yml").read_text())
    assert settings["rule_files"] == ["alerts.yml"]
    jobs = {job["job_name"] for job in settings["scrape_configs"]}
    assert jobs == {"penstock", "penstock-worker", "penstock-pipeline", "penstock-dashboard"}
    alerts = (DEPLOY / "prometheus/alerts.yml").read_text()
    assert set(re.findall(r'job="([^"]+)"', alerts)) <= jobs


# --- Containers ------------------------------------------------------------------------------------------


def test_the_compose_file_runs_commands_that_exist() -> None:
    services = compose()["services"]
    assert {"server", "replica", "dashboard", "worker", "sentinel-1"} <= set(services)
    for service in services.values():
        for other in service.get("depends_on", []):
            assert other in services
        if service["image"] == "penstock":
            check_command(service["command"])
        url = service["environment"].get("PENSTOCK_URL")
        if url is not None:
            server = parse_url(url.replace("${PENSTOCK_PASSWORD}", "secret"))
            assert all(host in services for host, _ in server.sentinels)
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            assert source in compose()["volumes"] or (DEPLOY / source).exists()


def test_the_dashboard_keeps_its_history_and_tells_its_health() -> None:
    service = compose()["services"]["dashboard"]
    command = service["command"]
    state = command[command.index("--state-dir") + 1]
    assert f"dashboard-data:{state}" in service["volumes"]
    port = command[command.index("--metrics") + 1]
    assert f":{port}/healthz" in service["healthcheck"]["test"][-1]
    found = unit(DEPLOY / "systemd/penstock-dashboard.service")["Service"]
    assert f"--state-dir %S/{found['StateDirectory']} " in found["ExecStart"]


def test_other_containers_can_scrape_dashboard_and_worker() -> None:
    for name in ("dashboard", "worker"):
        command = compose()["services"][name]["command"]
        assert command[command.index("--metrics-bind") + 1] == "0.0.0.0"


def test_the_page_of_deployment_names_every_alert() -> None:
    page = (DEPLOY.parent / "docs/deploy.md").read_text()
    for alert in re.findall(r"- alert: (\w+)", (DEPLOY / "prometheus/alerts.yml").read_text()):
        assert re.search(rf"\b{alert}\b", page), alert


def test_the_dockerfile_copies_what_exists_and_is_not_ignored() -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    ignored = (DEPLOY.parent / ".dockerignore").read_text().splitlines()
    copied = re.findall(r"^COPY (?!--from)(?:--\S+ )*(.+) \S+$", text, re.M)
    names = [name for line in copied for name in line.split()]
    assert "src" in names
    for name in names:
        assert (DEPLOY.parent / name).exists()
        assert f"!{name}" in ignored
    stages = re.findall(r"^FROM .*$", text, re.M)
    assert len(stages) == 2
    last = text.rpartition("FROM ")[2]
    assert "gcc" not in last
    assert last.index("USER penstock") < last.index("ENTRYPOINT")
    assert "HEALTHCHECK" in last
    assert 'CMD ["serve"]' in last


@pytest.mark.parametrize("script", sorted(DEPLOY.glob("*.sh")), ids=lambda path: path.name)
def test_scripts_are_sound(script: Path) -> None:
    assert os.access(script, os.X_OK)
    assert subprocess.run(["sh", "-n", script], check=False).returncode == 0


def test_the_start_of_a_container(tmp_path: Path) -> None:
    """The start script with the real server. The password has every character that could be misread."""
    start = str(DEPLOY / "container-start.sh")
    refused = subprocess.run(["sh", start], capture_output=True, check=False, env=environment(""))
    assert refused.returncode == 1
    assert b"set PENSTOCK_PASSWORD" in refused.stderr
    password = "a b\"c\\d'e$f"
    port, metrics = free_port(), free_port()
    (tmp_path / "own.conf").write_text("maxmemory 123mb\n")
    words = ["--port", str(port), "--dir", str(tmp_path / "data"), "--metrics-port", str(metrics)]
    process = subprocess.Popen(
        ["sh", start, "serve", str(tmp_path / "own.conf"), *words, "--bind", "127.0.0.1"],
        env=environment(password) | {"TMPDIR": str(tmp_path)},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if json.loads(line)["message"].startswith("ready on "):
                break
        with redis.Redis(port=port, password=password, decode_responses=True) as client:
            assert client.config_get("maxmemory") == {"maxmemory": str(123 << 20)}
            assert client.config_get("masterauth") == {"masterauth": password}
        assert "penstock_ready" in names_at(metrics)
    finally:
        process.terminate()
        process.communicate(timeout=SECONDS_MAX)


def environment(password: str) -> dict[str, str]:
    programs = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    return {**os.environ, "PATH": programs, "PENSTOCK_PASSWORD": password}


# --- systemd ---------------------------------------------------------------------------------------------


def unit(path: Path) -> configparser.ConfigParser:
    found = configparser.ConfigParser(interpolation=None, strict=False)
    found.optionxform = str  # type: ignore[assignment, method-assign]
    found.read_string(path.read_text())
    return found


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_a_unit_runs_a_command_that_exists(path: Path) -> None:
    found = unit(path)
    if path.suffix == ".timer":
        assert path.with_suffix(".service").exists()
        return
    words = shlex.split(found["Service"]["ExecStart"])
    assert words.pop(0) == "/usr/local/bin/penstock"
    check_command(words)


def test_workers_of_two_programs_on_one_host_have_their_own_ports() -> None:
    command = unit(DEPLOY / "systemd/penstock-worker@.service")["Service"]["ExecStart"]
    assert shlex.split(command)[-2:] == ["--metrics", "${METRICS_PORT}"]


def test_the_server_notifies_systemd() -> None:
    service = unit(DEPLOY / "systemd/penstock.service")["Service"]
    assert service["Type"] == "notify"
    assert "--supervised systemd" in service["ExecStart"]
    assert int(service["WatchdogSec"]) > 0


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_systemd_accepts_a_unit(path: Path, tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze on PATH")
    for other in UNITS:
        text = other.read_text().replace("/usr/local/bin/penstock", "/bin/true")
        (tmp_path / other.name).write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "verify", str(tmp_path / path.name)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
