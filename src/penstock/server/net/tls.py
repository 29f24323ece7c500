"""TLS: the settings as contexts of Python's ssl module, and new certificates while the server runs.

    server_context(config)     for clients that connect to tls-port
    client_context(config)     for connections that this server opens: a replica to its primary

A `Tls` holds the current context of one side: SERVER, or LINK to a primary. Each new connection takes it;
connections that exist keep theirs. Once a second the files are looked at. If one has changed, a context is
built from all of them. If that works it replaces the old one, otherwise the old one stays, and the log says
why. Certificate and key are two files: in the moment between their replacements they do not match, and the
next look finds both.

A certificate that expires within EXPIRY_DAYS is reported at the start, when it is read, and every day.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.errors import ConfigError
from penstock.server.log import LOG
from penstock.server.net.certificate import expiry_s_or_none

if TYPE_CHECKING:
    from penstock.server.config.settings import Config

EXPIRY_DAYS = 14
_DAY_S = 86_400
BUFFER_BYTES = 256 * 1024  # of one connection, in asyncio and in uvloop
PROTOCOLS = {
    "TLSv1": ssl.TLSVersion.TLSv1,
    "TLSv1.1": ssl.TLSVersion.TLSv1_1,
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}
_PROTOCOLS_DEFAULT = ("TLSv1.2", "TLSv1.3")
_VERIFY = {"yes": ssl.CERT_REQUIRED, "optional": ssl.CERT_OPTIONAL, "no": ssl.CERT_NONE}
_FILES = ("tls-cert-file", "tls-key-file", "tls-ca-cert-file", "tls-ca-cert-dir")
_LINK_FILES = ("tls-client-cert-file", "tls-client-key-file")


def server_context(config: Config) -> ssl.SSLContext:
    """The context of tls-port. Raises: ConfigError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if not config.value("tls-cert-file"):
        raise ConfigError("tls-cert-file is missing: TLS needs a certificate")
    _load_pair(context, config, "tls-cert-file", "tls-key-file")
    context.verify_mode = _VERIFY[config.value("tls-auth-clients")]
    if context.verify_mode != ssl.CERT_NONE:
        _load_authorities(context, config)
    _limit(context, config)
    if config.value("tls-prefer-server-ciphers"):
        context.options |= ssl.OP_CIPHER_SERVER_PREFERENCE
    if not config.value("tls-session-caching"):
        context.options |= ssl.OP_NO_TICKET
        context.num_tickets = 0
    return context


def client_context(config: Config) -> ssl.SSLContext:
    """The context of connections to other servers. Raises: ConfigError.

    The other server's certificate is verified, but not its name, as in Redis. Without a certificate for
    clients, the server's own is used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    own = "tls-client-" if config.value("tls-client-cert-file") else "tls-"
    if config.value(f"{own}cert-file"):
        _load_pair(context, config, f"{own}cert-file", f"{own}key-file")
    _load_authorities(context, config)
    _limit(context, config)
    return context


def _load_pair(context: ssl.SSLContext, config: Config, certificate: str, key: str) -> None:
    paths = config.value(certificate), config.value(key) or None
    password = config.value(f"{key}-pass")
    try:
        # Always with a password: without one, OpenSSL would ask for it on the terminal.
        context.load_cert_chain(*paths, password=lambda: password)
    except ssl.SSLError as error:
        why = error.reason or "not a certificate with its key"
        raise ConfigError(f"{certificate} {paths[0]}, {key} {paths[1]}: {_words(why)}") from error
    except OSError as error:
        raise ConfigError(
            f"{certificate} {paths[0]}, {key} {paths[1]}: {error.strerror}"
        ) from error


def _load_authorities(context: ssl.SSLContext, config: Config) -> None:
    file, folder = config.value("tls-ca-cert-file"), config.value("tls-ca-cert-dir")
    if not file and not folder:
        raise ConfigError(
            "tls-ca-cert-file or tls-ca-cert-dir is missing: certificates cannot be verified. To let clients"
            " in without one, set tls-auth-clients no"
        )
    try:
        context.load_verify_locations(file or None, folder or None)
    except ssl.SSLError as error:
        why = error.reason or "no certificates"
        raise ConfigError(f"tls-ca-cert-file {file}: {_words(why)}") from error
    except OSError as error:
        raise ConfigError(f"tls-ca-cert-file {file or folder}: {error.strerror}") from error


def _limit(context: ssl.SSLContext, config: Config) -> None:
    """Limit the versions and the ciphers."""
    versions = [PROTOCOLS[name] for name in config.value("tls-protocols") or _PROTOCOLS_DEFAULT]
    context.minimum_version, context.maximum_version = min(versions), max(versions)
    if config.value("tls-ciphers"):
        try:
            context.set_ciphers(config.value("tls-ciphers"))
        except ssl.SSLError as error:
            raise ConfigError("tls-ciphers: no such cipher") from error


def _words(reason: str) -> str:
    """The reason of OpenSSL as words: KEY_VALUES_MISMATCH."""
    return reason.replace("_", " ").lower()


def _server_certificate(config: Config) -> str:
    return str(config.value("tls-cert-file"))


def _link_certificate(config: Config) -> str:
    """The certificate of links; none if it is that of the server, which has its own report."""
    shared = "" if config.value("tls-port") else config.value("tls-cert-file")
    return str(config.value("tls-client-cert-file") or shared)


@dataclass(frozen=True, slots=True)
class Side:
    """How the context of one side is built, from which files, and whose end is reported."""

    build: Callable[[Config], ssl.SSLContext]
    files: tuple[str, ...]
    certificate: Callable[[Config], str]
    who_fails: str
    new: str


SERVER = Side(
    server_context, _FILES, _server_certificate, "clients that verify it fail", "connections"
)
LINK = Side(
    client_context,
    (*_FILES, *_LINK_FILES),
    _link_certificate,
    "a primary that verifies it no longer accepts this server",
    "links to a primary",
)


_About = tuple[int, int, int] | None


@dataclass(frozen=True, slots=True)
class Built:
    """A context, and how the files looked from which it was built."""

    context: ssl.SSLContext
    seen: list[_About]


class Tls:
    """The context in force: `context`. `expires_s`: Unix time of its certificate's end, None if unknown."""

    def __init__(self, config: Config, side: Side = SERVER) -> None:
        """Raises: ConfigError."""
        self._config = config
        self._side = side
        self.use(self.build())

    def use(self, built: Built) -> None:
        """Put a context in force."""
        self.context = built.context
        self.expires_s = expiry_s_or_none(self._side.certificate(self._config))
        self._warned_s = 0
        self._seen = built.seen

    def build(self) -> Built:
        """Read the settings and files again; `use` puts the result in force. Raises: ConfigError."""
        seen = self._look_at_files()
        return Built(self._side.build(self._config), seen)

    def look(self, now_s: int) -> None:
        """Called by the cron: use files that have changed, and warn of the certificate's end."""
        seen = self._look_at_files()
        if seen != self._seen:
            self._seen = seen  # a file that is wrong is reported once
            try:
                self.use(self.build())
            except ConfigError as error:
                LOG.warning("TLS: the files have changed, but cannot be used: %s", error)
            else:
                LOG.info("TLS: new certificates are in use for new %s", self._side.new)
        self._warn_of_end(now_s)

    def _warn_of_end(self, now_s: int) -> None:
        if self.expires_s is None or now_s - self._warned_s < _DAY_S:
            return
        left_s = self.expires_s - now_s
        if left_s > EXPIRY_DAYS * _DAY_S:
            return
        self._warned_s = now_s
        path = self._side.certificate(self._config)
        if left_s <= 0:
            LOG.warning("TLS: the certificate %s has expired: %s", path, self._side.who_fails)
        else:
            end = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(self.expires_s))
            LOG.warning("TLS: the certificate %s expires at %s", path, end)

    def _look_at_files(self) -> list[_About]:
        found: list[_About] = []
        for name in self._side.files:
            path = self._config.value(name)
            try:
                about = Path(path).stat() if path else None
            except OSError:
                about = None
            found.append(
                None if about is None else (about.st_mtime_ns, about.st_size, about.st_ino)
            )
        return found


def rebuild(sides: list[Tls]) -> None:
    """The settings have changed: build the contexts again, of all sides or of none. Raises: ConfigError."""
    built = [(side, side.build()) for side in sides]
    for side, made in built:
        side.use(made)
