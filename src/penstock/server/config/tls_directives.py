"""The directives of TLS: a part of the table in directives.py."""

from __future__ import annotations

from penstock.server.config.apply import (
    apply_certificate,
    apply_link_tls,
    apply_server_tls,
    apply_tls,
)
from penstock.server.config.kinds import Choice, Number, Protocols, Text, YesNo
from penstock.server.config.settings import AT_START, Directive


def _no_ciphersuites(value: str) -> str | None:
    return "Python cannot choose the ciphers of TLS 1.3: leave this out" if value else None


TLS = (
    Directive(
        "tls-port",
        Number(0, 65535),
        0,
        "TCP port for TLS; 0 for none. `port 0` leaves only this one.",
        AT_START,
    ),
    Directive(
        "tls-cert-file",
        Text("a path"),
        "",
        "Certificate of the server, with its chain.",
        apply=apply_certificate,
    ),
    Directive(
        "tls-key-file",
        Text("a path"),
        "",
        "Private key of the certificate.",
        apply=apply_certificate,
    ),
    Directive(
        "tls-key-file-pass",
        Text("any text"),
        "",
        "Password of the private key.",
        apply=apply_certificate,
    ),
    Directive(
        "tls-client-cert-file",
        Text("a path"),
        "",
        "Certificate for connections to other servers; by default tls-cert-file.",
        apply=apply_link_tls,
    ),
    Directive(
        "tls-client-key-file",
        Text("a path"),
        "",
        "Private key of tls-client-cert-file.",
        apply=apply_link_tls,
    ),
    Directive(
        "tls-client-key-file-pass",
        Text("any text"),
        "",
        "Password of tls-client-key-file.",
        apply=apply_link_tls,
    ),
    Directive(
        "tls-ca-cert-file",
        Text("a path"),
        "",
        "Certificates that clients' certificates are verified by.",
        apply=apply_tls,
    ),
    Directive(
        "tls-ca-cert-dir",
        Text("a path"),
        "",
        "The same as a folder, with names by hash (openssl rehash).",
        apply=apply_tls,
    ),
    Directive(
        "tls-auth-clients",
        Choice(("no", "yes", "optional")),
        "yes",
        "Whether clients must have a certificate.",
        apply=apply_server_tls,
    ),
    Directive(
        "tls-protocols",
        Protocols(),
        (),
        "Versions of TLS.",
        apply=apply_tls,
    ),
    Directive(
        "tls-ciphers",
        Text("as in OpenSSL"),
        "",
        "Ciphers up to TLS 1.2; empty for those of Python.",
        apply=apply_tls,
    ),
    Directive(
        "tls-ciphersuites",
        Text("empty"),
        "",
        "Ciphers of TLS 1.3. Python cannot choose them: only an empty text is supported.",
        check=_no_ciphersuites,
    ),
    Directive(
        "tls-prefer-server-ciphers",
        YesNo(),
        False,
        "Choose ciphers by the server's order, not the client's.",
        apply=apply_server_tls,
    ),
    Directive(
        "tls-session-caching",
        YesNo(),
        True,
        "Let clients resume sessions, with tickets.",
        apply=apply_server_tls,
    ),
)
