"""Puts settings in force: one function for each directive with an `apply`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.core.idempotency import IdempotencySettings
from penstock.errors import ConfigError
from penstock.server import log
from penstock.server.net.listener import clients_allowed
from penstock.server.net.output_limits import OutputLimit
from penstock.server.net.tls import rebuild
from penstock.server.replication.backlog import BACKLOG_BYTES_MIN
from penstock.server.server import NEVER_SLOW
from penstock.server.stats.memory_guard import check_memory

if TYPE_CHECKING:
    from penstock.server.server import Server


def apply_password(server: Server, text: str) -> None:
    """The password of the user `default`. Clients that have logged in stay logged in."""
    server.users.set_password(text.encode(errors="surrogateescape"))


def apply_denial_log_length(server: Server, count: int) -> None:
    server.users.log.length_max = count
    server.users.log.cut()


def apply_pubsub_default(server: Server, name: str) -> None:
    server.users.all_channels = name == "allchannels"


def apply_proto_max_bulk_len(server: Server, size: int) -> None:
    server.wire_limits.bulk_bytes_max = size


def apply_query_limit(server: Server, size: int) -> None:
    server.query_bytes_max = size


def apply_output_limits(server: Server, limits: dict[str, OutputLimit]) -> None:
    server.output_limits.normal = limits["normal"]
    server.output_limits.replica = limits["replica"]
    server.output_limits.pubsub = limits["pubsub"]


def apply_max_memory(server: Server, size: int) -> None:
    server.max_memory = size
    check_memory(server)


def apply_max_memory_clients(server: Server, setting: int) -> None:
    server.client_memory.setting = setting
    server.client_memory.recount()
    if setting:
        server.loop.call_soon(server.client_memory.evict)


def apply_auth_timeout(server: Server, seconds: int) -> None:
    server.strangers.seconds = seconds


def apply_max_clients(server: Server, count: int) -> None:
    """Raises: ConfigError if the system allows fewer open files."""
    allowed = clients_allowed(count)
    if allowed < count:
        raise ConfigError(
            "The operating system is not able to handle the specified number of clients,"
            f" try with {allowed}"
        )
    server.max_clients = count


def apply_stream_node_bytes(server: Server, size: int) -> None:
    server.engine.limits.bytes_max = size


def apply_stream_node_entries(server: Server, count: int) -> None:
    server.engine.limits.entries_max = count


def apply_idempotency_seconds(server: Server, seconds: int) -> None:
    limits = server.engine.limits
    limits.idempotency = IdempotencySettings(seconds, limits.idempotency.size_max)


def apply_idempotency_size(server: Server, size: int) -> None:
    limits = server.engine.limits
    limits.idempotency = IdempotencySettings(limits.idempotency.duration_s, size)


def apply_list_node_size(server: Server, size: int) -> None:
    server.engine.list_limits.set_listpack_size(size)


def apply_events(server: Server, kinds: int) -> None:
    server.engine.context.event_kinds = kinds


def apply_slow_us(server: Server, us: int) -> None:
    server.slow_us = NEVER_SLOW if us < 0 else us


def apply_slow_limit(server: Server, count: int) -> None:
    slow_log = server.slow_log
    slow_log.limit = count
    while len(slow_log.entries) > count:
        slow_log.entries.pop()


def apply_log_level(server: Server, name: str) -> None:
    if log.LOG.handlers:  # otherwise the embedding program owns the log
        log.set_level(name)


def apply_hz(server: Server, hz: int) -> None:
    server.hz = hz


def apply_append_only(server: Server, on: bool) -> None:
    """Raises: ConfigError if a log cannot be started now. At start, App starts the log."""
    if server.durability is not None:
        server.durability.switch_log(on)


def apply_fsync_policy(server: Server, _value: object) -> None:
    if server.durability is not None:
        server.durability.rewrites.apply_policy()


def apply_tls(server: Server, _value: object) -> None:
    """Settings of both sides. Raises: ConfigError if they cannot be used; then nothing has changed."""
    rebuild([tls for tls in (server.tls, server.replication.tls_or_none()) if tls is not None])


def apply_server_tls(server: Server, _value: object) -> None:
    """Settings of tls-port only. Raises: as apply_tls. At start, App builds the first context."""
    rebuild([] if server.tls is None else [server.tls])


def apply_link_tls(server: Server, _value: object) -> None:
    """Settings of links to a primary only. Raises: as apply_tls."""
    tls = server.replication.tls_or_none()
    rebuild([] if tls is None else [tls])


def apply_certificate(server: Server, value: object) -> None:
    """The server's certificate. Links use it if they have none of their own. Raises: as apply_tls."""
    assert server.config is not None
    if server.config.value("tls-client-cert-file"):
        apply_server_tls(server, value)
    else:
        apply_tls(server, value)


def apply_debug_allowed(server: Server, who: str) -> None:
    server.debug_allowed = who


def apply_replica_role(server: Server, _value: object) -> None:
    server.replication.note_link()


def apply_backlog_size(server: Server, size: int) -> None:
    server.replication.feed.resize(max(size, BACKLOG_BYTES_MIN))


def apply_needed_replicas(server: Server, _value: object) -> None:
    server.replication.check_replicas()


def apply_needed_acks(server: Server, _value: object) -> None:
    server.replication.require_acks()


def apply_acks_on_disk(server: Server, on: bool) -> None:
    server.replication.held.needs_sync = on
    server.replication.held.release()  # fewer acks may be needed now
    server.replication.check_replicas()


def apply_ack_timeout(server: Server, ms: int) -> None:
    server.replication.held.timeout_ms = ms
