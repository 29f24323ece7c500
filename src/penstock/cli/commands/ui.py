"""`penstock ui`: runs the dashboard."""

from __future__ import annotations

import ipaddress
import socket
import ssl
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.connect import URL_DEFAULT, MetricsBind
from penstock.cli.terminal.outcome import Failure, example, say
from penstock.client.address import BadUrl
from penstock.metrics.listener import BIND_DEFAULT
from penstock.web.server.named import BadServers, NamedServer, parse_servers

EPILOG = example(
    "penstock ui                                    http://127.0.0.1:8379, for a local server",
    "penstock ui --url redis://10.0.0.7:6379/2      another server",
    "penstock ui --url prod=redis://10.0.0.7 --url test=redis://10.0.0.8    two servers",
    "penstock ui --allow-writes                     with buttons that change data",
    "penstock ui --state-dir ~/.local/state/penstock    with history of the last 14 days",
    "PENSTOCK_UI_PASSWORD=... penstock ui --bind 0.0.0.0 --tls-cert-file ui.crt --tls-key-file ui.key",
)

URL_HINT = "'--url' (or PENSTOCK_URL)"
Urls = Annotated[
    list[str] | None,
    typer.Option(
        "--url",
        envvar="PENSTOCK_URL",
        show_default=URL_DEFAULT,
        metavar="[NAME=]URL",
        help="Server: redis://[user:password@]host:port/db, rediss://..., unix://path, or by Sentinels"
        " redis+sentinel://host:port,host:port/name. May be given several times, with names.",
    ),
]
Certificate = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Certificate with its chain: serve https instead of http."),
]
Key = Annotated[str | None, typer.Option(metavar="FILE", help="Private key of the certificate.")]


def ui(
    url: Urls = None,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port of the dashboard.")] = 8379,
    bind: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            help="Address to listen on. Any other than a loopback address needs a password.",
        ),
    ] = "127.0.0.1",
    password: Annotated[
        str,
        typer.Option(
            envvar="PENSTOCK_UI_PASSWORD",
            show_envvar=True,
            show_default=False,
            metavar="TEXT",
            help="Password of the dashboard. Prefer the environment variable: every user of this machine can"
            " see options.",
        ),
    ] = "",
    viewer_password: Annotated[
        str,
        typer.Option(
            envvar="PENSTOCK_UI_VIEWER_PASSWORD",
            show_envvar=True,
            show_default=False,
            metavar="TEXT",
            help="A second password, for viewers: they see everything and change nothing.",
        ),
    ] = "",
    allow_writes: Annotated[
        bool,
        typer.Option("--allow-writes", help="Allow changes of entries, groups and consumers."),
    ] = False,
    cluster: Annotated[
        bool,
        typer.Option(
            "--cluster",
            help="Each URL is a node of a Redis Cluster: show all nodes of the cluster.",
        ),
    ] = False,
    trusted_proxy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ADDRESS",
            help="Address or network of a reverse proxy. Its X-Forwarded-For header tells clients apart, to"
            " limit wrong passwords. May be given several times.",
        ),
    ] = None,
    tls_cert_file: Certificate = None,
    tls_key_file: Key = None,
    state_dir: Annotated[
        Path | None,
        typer.Option(
            envvar="PENSTOCK_UI_STATE",
            show_envvar=True,
            metavar="FOLDER",
            help="Folder for a file with the history of 14 days. Without it, the history is in memory.",
        ),
    ] = None,
    metrics: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=65535,
            metavar="PORT",
            help="Serve /metrics for Prometheus, /healthz and /readyz on this port.",
        ),
    ] = None,
    metrics_bind: MetricsBind = BIND_DEFAULT,
) -> None:
    """Run the dashboard, which shows servers in a browser.

    It shows entries, groups, structure, pipelines and workers. It works with any server that speaks Redis's
    protocol. The dashboard is read-only unless you give --allow-writes. Then it shows every change before
    making it. Stop it with Ctrl-C or SIGTERM.
    """
    if not password and not _is_loopback(bind):
        raise typer.BadParameter(
            f"{bind} can be reached from other machines: set a password in PENSTOCK_UI_PASSWORD",
            param_hint="'--bind'",
        )
    if viewer_password and not password:
        raise typer.BadParameter(
            "needs a password for operators too: set PENSTOCK_UI_PASSWORD",
            param_hint="'--viewer-password'",
        )
    if viewer_password and viewer_password == password:
        raise typer.BadParameter(
            "must differ from the password of operators", param_hint="'--viewer-password'"
        )
    servers = _servers(url or [URL_DEFAULT])
    proxies = tuple(_proxy(text) for text in trusted_proxy or [])
    _check_certificate(tls_cert_file, tls_key_file)
    _check_free(bind, port)
    if metrics is not None:
        if metrics == port:
            raise typer.BadParameter(
                "must differ from the port of the dashboard", param_hint="'--metrics'"
            )
        _check_free(metrics_bind, metrics)
    try:
        # Imported here because it is large and only this command needs it.
        import nicegui  # noqa: F401, PLC0415
    except ImportError:
        raise Failure("the dashboard needs NiceGUI: pip install 'penstock[ui]'") from None
    from penstock.web import app  # noqa: PLC0415
    from penstock.web.board import Settings  # noqa: PLC0415
    from penstock.web.watch.archive import ArchiveError  # noqa: PLC0415

    host = f"[{bind}]" if ":" in bind else bind
    scheme = "http" if tls_cert_file is None else "https"
    say(f"dashboard at {scheme}://{host}:{port}/" + (", writes allowed" if allow_writes else ""))
    try:
        app.run(
            Settings(
                servers=servers,
                port=port,
                bind=bind,
                password=password,
                viewer_password=viewer_password,
                allow_writes=allow_writes,
                cluster=cluster,
                proxies=proxies,
                certificate=tls_cert_file,
                key=tls_key_file,
                state=state_dir,
                metrics_port=metrics,
                metrics_bind=metrics_bind,
            )
        )
    except BadUrl as error:  # a cluster has other URLs
        raise typer.BadParameter(f"expected {error}", param_hint=URL_HINT) from None
    except ArchiveError as error:
        raise Failure(str(error)) from None


def _servers(words: list[str]) -> tuple[NamedServer, ...]:
    try:
        return parse_servers(words)
    except BadUrl as error:
        raise typer.BadParameter(f"expected {error}", param_hint=URL_HINT) from None
    except BadServers as error:
        raise typer.BadParameter(str(error), param_hint=URL_HINT) from None


def _is_loopback(bind: str) -> bool:
    try:
        return bind == "localhost" or ipaddress.ip_address(bind).is_loopback
    except ValueError:
        return False


def _proxy(text: str) -> str:
    """An address or network in canonical form. A name or `*` is refused: it could match any client."""
    try:
        network = ipaddress.ip_network(text)
    except ValueError:
        raise typer.BadParameter(
            f"{text} is not an address (10.0.0.1) or a network (10.0.0.0/24)",
            param_hint="'--trusted-proxy'",
        ) from None
    return str(network if "/" in text else network.network_address)


def _check_certificate(certificate: str | None, key: str | None) -> None:
    """Raises: Failure if certificate and key cannot be used."""
    if certificate is None and key is not None:
        raise typer.BadParameter("needs --tls-cert-file", param_hint="'--tls-key-file'")
    if certificate is None:
        return
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
    except ssl.SSLError:
        raise Failure(f"{certificate} is not a certificate with its key") from None
    except OSError as error:
        raise Failure(f"{certificate}, {key}: {error.strerror}") from None


def _check_free(bind: str, port: int) -> None:
    """Raises: Failure if the port is in use, with a text of one line; uvicorn would log a traceback."""
    try:
        family, _, _, _, address = socket.getaddrinfo(bind, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        raise Failure(f"cannot listen on {bind}, port {port}: {error.strerror}") from None
