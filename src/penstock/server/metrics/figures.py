"""Metrics of a server as a whole: what INFO shows, with Prometheus's names and units."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock._version import VERSION
from penstock.build import KIND
from penstock.metrics.histogram import Histogram
from penstock.metrics.text import COUNTER, GAUGE, HISTOGRAM, Page
from penstock.server.command_catalogue import shown_name
from penstock.server.durability import Durability
from penstock.server.metrics.pace import Pace
from penstock.server.server import Server
from penstock.server.session.states import DISK_FAILED
from penstock.server.stats import process
from penstock.server.stats.info_sections import last_save_s

US = 1_000_000


@dataclass(frozen=True, slots=True)
class Timings:
    """Durations that only metrics use. `delays`: how late the loop ran its periodic work."""

    fsyncs: Histogram = field(default_factory=Histogram)
    delays: Histogram = field(default_factory=Histogram)


def add_process(page: Page, server: Server, timings: Timings) -> None:
    """Build, time, memory."""
    compat = server.engine.context.compat.redis_version
    about = page.family("penstock_build_info", GAUGE, "Version and kind of the build; always 1.")
    about.add(1, version=VERSION, build=KIND, redis_version=compat)
    uptime_ms = server.steady_ms() - server.startup.started_steady_ms
    page.gauge("penstock_uptime_seconds", "Time since the start.", uptime_ms / 1000)
    used = process.resident_bytes()
    page.gauge("penstock_memory_bytes", "Resident memory of the process.", used)
    peak = max(used, process.peak_bytes())
    page.gauge("penstock_memory_peak_bytes", "Peak of the resident memory.", peak)
    page.gauge("penstock_memory_limit_bytes", "maxmemory; 0 for no limit.", server.max_memory)
    page.gauge("penstock_memory_system_bytes", "Memory of the machine.", process.system_bytes())
    system, user = process.cpu_seconds()
    cpu = page.family("penstock_cpu_seconds_total", COUNTER, "CPU time of the process.")
    cpu.add(system, mode="system")
    cpu.add(user, mode="user")
    fsyncs = page.family("penstock_fsync_seconds", HISTOGRAM, "Durations of fsync.")
    fsyncs.add_histogram(timings.fsyncs)
    delays = page.family(
        "penstock_loop_delay_seconds",
        HISTOGRAM,
        "How late the event loop ran its periodic work: how long it was busy before.",
    )
    delays.add_histogram(timings.delays)


def add_certificate(page: Page, server: Server) -> None:
    """The end of the certificate of tls-port."""
    if server.tls is not None and server.tls.expires_s is not None:
        page.gauge(
            "penstock_tls_expiry_timestamp_seconds",
            "When the certificate of tls-port expires.",
            server.tls.expires_s,
        )


def add_clients(page: Page, server: Server) -> None:
    """Connections and their bytes, keys."""
    page.gauge("penstock_clients", "Connected clients.", len(server.sessions))
    page.gauge("penstock_clients_limit", "maxclients.", server.max_clients)
    page.gauge("penstock_clients_blocked", "Blocked clients.", server.engine.waiters.count)
    received = server.next_id - 1
    page.counter("penstock_connections_total", "Connections accepted so far.", received)
    rejected = 0 if server.door is None else server.door.rejected
    page.counter("penstock_connections_rejected_total", "Connections refused so far.", rejected)
    page.counter("penstock_input_bytes_total", "Bytes received from clients.", server.bytes_in)
    page.counter("penstock_output_bytes_total", "Bytes sent to clients.", server.bytes_out)
    keys = page.family("penstock_keys", GAUGE, "Keys of a database.")
    for keyspace in server.engine.context.databases:
        if keyspace.values:
            keys.add(len(keyspace.values), db=str(keyspace.index))
    expired = server.engine.expired_keys
    page.counter("penstock_expired_keys_total", "Keys that have expired so far.", expired)


async def add_commands(page: Page, server: Server, pace: Pace) -> None:
    """Calls, failures and latency of each command that was called or refused."""
    calls = page.family("penstock_commands_total", COUNTER, "Calls of a command.")
    failures = page.family(
        "penstock_command_failures_total", COUNTER, "Calls that returned an error."
    )
    refusals = page.family(
        "penstock_command_rejections_total", COUNTER, "Calls refused before they ran."
    )
    latency = page.family("penstock_command_seconds", HISTOGRAM, "Run time of a command.")
    for tally in server.tallies.by_name.values():
        if not (tally.calls or tally.rejected or tally.failed):
            continue
        name = shown_name(tally.command)
        calls.add(tally.calls, command=name)
        failures.add(tally.failed, command=name)
        refusals.add(tally.rejected, command=name)
        times = Histogram()
        for upper_us, count in tally.buckets():
            times.note(upper_us / US, count)
        times.total = tally.us / US
        latency.add_histogram(times, command=name)
        await pace.rest()
    errors = page.family("penstock_errors_total", COUNTER, "Error replies by their code.")
    for code, count in sorted(server.errors.items()):
        errors.add(count, code=code)


def add_disk(page: Page, server: Server) -> None:
    """The log, snapshots, and the space on their disk."""
    has_log = server.turn.commit is not None
    page.gauge("penstock_log_enabled", "Whether changes are logged (appendonly).", int(has_log))
    is_ok = int(not server.state & DISK_FAILED)
    page.gauge("penstock_log_ok", "Whether the log can be written.", is_ok)
    durability = server.durability
    if durability is None:
        return
    if has_log:
        _add_log(page, durability)
    changes = server.engine.context.dirty - durability.snapshots.status.dirty_at_save
    page.gauge("penstock_snapshot_changes", "Changes since the last snapshot.", changes)
    is_ok = int(durability.snapshots.status.ok)
    page.gauge("penstock_snapshot_ok", "Whether the last snapshot succeeded.", is_ok)
    is_running = int(durability.snapshots.is_running)
    page.gauge("penstock_snapshot_running", "Whether a snapshot is being written.", is_running)
    page.gauge(
        "penstock_snapshot_timestamp_seconds",
        "When the last snapshot was written, or the start.",
        last_save_s(server),
    )
    if server.config is not None:
        free, size = process.disk_bytes(server.config.value("dir"))
        page.gauge("penstock_disk_free_bytes", "Free space for the data directory.", free)
        page.gauge("penstock_disk_bytes", "Size of the data directory's file system.", size)


def _add_log(page: Page, durability: Durability) -> None:
    store, rewrites = durability.store, durability.rewrites
    page.gauge("penstock_log_bytes", "Size of the log's files.", store.log_bytes())
    page.gauge(
        "penstock_log_base_bytes", "Size of the log after its last rewrite.", store.base_bytes
    )
    waiting = 0 if store.commit is None else store.commit.position - store.commit.synced
    page.gauge("penstock_log_waiting", "Batches of changes that are not synced yet.", waiting)
    page.gauge(
        "penstock_rewrite_ok", "Whether the last rewrite succeeded.", int(rewrites.status.ok)
    )
    page.gauge(
        "penstock_rewrite_running", "Whether the log is being rewritten.", int(rewrites.is_running)
    )


def add_replication(page: Page, server: Server) -> None:
    """Role, position, the link to the primary, replicas."""
    replication = server.replication
    offset = replication.feed.history.offset
    primary = int(replication.is_primary)
    page.gauge("penstock_replication_primary", "1 for a primary, 0 for a replica.", primary)
    page.gauge("penstock_replication_offset", "Position in the replication stream.", offset)
    now_ms = server.steady_ms()
    link = replication.link
    if link is not None:
        up = int(link.is_up)
        page.gauge("penstock_replication_link_up", "Whether a replica has its primary.", up)
        silent_ms = now_ms - (link.io_ms if link.is_up else link.down_since_ms)
        page.gauge(
            "penstock_replication_link_silence_seconds",
            "Time since a replica received anything, or lost its primary.",
            max(0, silent_ms) / 1000,
        )
    replicas = replication.replicas.all()
    page.gauge("penstock_replicas", "Connected replicas.", len(replicas))
    lag = page.family("penstock_replica_lag_bytes", GAUGE, "Bytes a replica has not applied yet.")
    silence = page.family("penstock_replica_ack_seconds", GAUGE, "Time since a replica's last ack.")
    for replica in replicas:
        if replica.is_online:
            name = "{}:{}".format(*replica.address)
            lag.add(max(0, offset - replica.acked), replica=name)
            silence.add(max(0, now_ms - replica.acked_ms) / 1000, replica=name)
    counts = replication.counts
    page.counter("penstock_full_syncs_total", "Snapshots sent to replicas.", counts.full)
    page.counter("penstock_partial_syncs_total", "Replicas that continued.", counts.partial_ok)
