"""The sections of INFO: names and values, in Redis 7.0's order.

Every value is true for this server. Fields that count something penstock does not have (replicas, cached
scripts) are 0, because tools read them. Fields about Redis's internals (jemalloc's arenas, the eviction
clock) are left out.

    used_memory            resident memory of the whole process: interpreter, code and data
    used_memory_startup    the same at the start of the server
    used_memory_dataset    the difference
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable
from itertools import islice

from penstock._version import VERSION
from penstock.build import KIND
from penstock.engine.keyspace import Keyspace
from penstock.persist.recovery import Progress
from penstock.server.command_catalogue import shown_name
from penstock.server.durability import Durability
from penstock.server.replication import report as replication_report
from penstock.server.saving.rewrites import RewriteStatus
from penstock.server.saving.snapshots import SnapshotStatus
from penstock.server.server import Server
from penstock.server.session.states import DISK_FAILED, SUBSCRIBED
from penstock.server.stats import process
from penstock.server.supervision.systemd import supervisor_name

Fields = list[tuple[str, object]]

# The reasons of ACL LOG, and their names in INFO. `group` is penstock's own.
_DENIALS = {"auth": "auth", "command": "cmd", "key": "key", "group": "group", "channel": "channel"}
TTLS_AVERAGED_MAX = 1000  # INFO is called often, and must not visit a million keys

_DAY_S = 86_400
PERCENTILES = (50.0, 99.0, 99.9)


def human(size: int) -> str:
    """A size for people: 894.98K."""
    if size < 1024:
        return f"{size}B"
    shown = float(size)
    for unit in "KMGTP":
        shown /= 1024
        if shown < 1024:
            return f"{shown:.2f}{unit}"
    return f"{size}B"


def percent(part: int, whole: int) -> str:
    """`98.49%`; 0% if the whole is 0."""
    return f"{100 * part / whole if whole else 0:.2f}%"


def about_server(server: Server) -> Fields:
    """Version, process, uptime."""
    startup = server.startup
    config = server.config
    now_us = server.engine.context.instant.us
    uptime_s = (server.steady_ms() - startup.started_steady_ms) // 1000
    return [
        ("redis_version", server.engine.context.compat.redis_version),
        ("redis_git_sha1", "00000000"),
        ("redis_git_dirty", 0),
        ("redis_build_id", f"penstock-{VERSION}-{KIND}"),
        ("redis_mode", "standalone"),
        ("os", f"{platform.system()} {platform.release()} {platform.machine()}"),
        ("arch_bits", 64 if sys.maxsize > 2**32 else 32),
        ("process_id", os.getpid()),
        ("process_supervised", supervisor_name(config)),
        ("run_id", startup.run_id),
        ("tcp_port", 0 if config is None else config.value("port")),
        ("server_time_usec", now_us),
        ("uptime_in_seconds", uptime_s),
        ("uptime_in_days", uptime_s // _DAY_S),
        ("hz", server.hz),
        ("configured_hz", server.hz),
        ("executable", sys.executable),
        ("config_file", "" if config is None else config.file or ""),
        ("io_threads_active", 0),
    ]


def about_clients(server: Server) -> Fields:
    """Connected, subscribed, watching and blocked clients, and the keys that they watch or wait for."""
    engine = server.engine
    compat = engine.context.compat
    fields: Fields = [
        ("connected_clients", len(server.sessions)),
        ("cluster_connections", 0),
        ("maxclients", server.max_clients),
        ("blocked_clients", engine.waiters.count),
        ("tracking_clients", 0),
    ]
    if compat.client_lists_watches:
        sessions = list(server.sessions.values())
        subscribed = sum(bool(session.state & SUBSCRIBED) for session in sessions)
        fields.append(("pubsub_clients", subscribed))
        watching = sum(session.watching is not None for session in sessions)
        fields.append(("watching_clients", watching))
    fields.append(("clients_in_timeout_table", 0))
    if compat.client_lists_watches:
        watched = sum(len(keyspace.watches) for keyspace in engine.context.databases)
        fields.append(("total_watched_keys", watched))
    if compat.info_counts_waits:
        places = engine.waiters.places()
        fields.append(("total_blocking_keys", len(places)))
        # Readers of a group also wait for the removal of its stream.
        grouped = sum(map(engine.waiters.has_group_reader, places))
        fields.append(("total_blocking_keys_on_nokey", grouped))
    return fields


def about_memory(server: Server) -> Fields:
    """Memory of the process, and its limit."""
    startup_bytes = server.startup.process_bytes
    used = process.resident_bytes()
    peak = max(used, process.peak_bytes())
    dataset = max(0, used - startup_bytes)
    system = process.system_bytes()
    return [
        ("used_memory", used),
        ("used_memory_human", human(used)),
        ("used_memory_rss", used),
        ("used_memory_rss_human", human(used)),
        ("used_memory_peak", peak),
        ("used_memory_peak_human", human(peak)),
        ("used_memory_peak_perc", percent(used, peak)),
        ("used_memory_overhead", used - dataset),
        ("used_memory_startup", startup_bytes),
        ("used_memory_dataset", dataset),
        ("used_memory_dataset_perc", percent(dataset, used)),
        ("total_system_memory", system),
        ("total_system_memory_human", human(system)),
        ("used_memory_lua", 0),
        ("used_memory_lua_human", "0B"),
        ("number_of_cached_scripts", 0),
        ("number_of_functions", 0),
        ("number_of_libraries", 0),
        ("maxmemory", server.max_memory),
        ("maxmemory_human", human(server.max_memory)),
        ("maxmemory_policy", "noeviction"),
        ("mem_fragmentation_ratio", "1.00"),
        ("mem_fragmentation_bytes", 0),
        ("mem_not_counted_for_evict", 0),
        (
            "mem_replication_backlog",
            0 if server.replication.feed.backlog is None else server.replication.feed.backlog.size,
        ),
        ("mem_clients_slaves", 0),
        ("mem_clients_normal", server.client_memory.recount()),
        ("mem_aof_buffer", 0),
        ("mem_allocator", "pymalloc"),
        ("active_defrag_running", 0),
        ("lazyfree_pending_objects", len(server.engine.context.garbage)),
    ]


def about_persistence(server: Server) -> Fields:
    """Snapshots, log and loading."""
    durability = server.durability
    snapshot = SnapshotStatus() if durability is None else durability.snapshots.status
    rewrite = RewriteStatus() if durability is None else durability.rewrites.status
    saving = durability is not None and durability.snapshots.is_running
    rewriting = durability is not None and durability.rewrites.is_running
    scheduled = durability is not None and durability.rewrites.is_scheduled
    seconds = -1 if durability is None else durability.child.seconds
    has_log = server.turn.commit is not None
    fields: Fields = [
        ("loading", int(server.loading is not None)),
        ("async_loading", 0),
        ("rdb_changes_since_last_save", server.engine.context.dirty - snapshot.dirty_at_save),
        ("rdb_bgsave_in_progress", int(saving)),
        ("rdb_last_save_time", last_save_s(server)),
        ("rdb_last_bgsave_status", "ok" if snapshot.ok else "err"),
        ("rdb_last_bgsave_time_sec", snapshot.seconds),
        ("rdb_current_bgsave_time_sec", seconds if saving else -1),
        ("aof_enabled", int(has_log)),
        ("aof_rewrite_in_progress", int(rewriting)),
        ("aof_rewrite_scheduled", int(scheduled)),
        ("aof_last_rewrite_time_sec", rewrite.seconds),
        ("aof_current_rewrite_time_sec", seconds if rewriting else -1),
        ("aof_last_bgrewrite_status", "ok" if rewrite.ok else "err"),
        ("aof_last_write_status", "err" if server.state & DISK_FAILED else "ok"),
    ]
    if durability is not None and has_log:
        fields += _about_log(durability)
    if server.loading is not None:
        fields += _about_loading(server.loading)
    return fields


def last_save_s(server: Server) -> int:
    """When the last snapshot was written, or else when the server started, in seconds since 1970."""
    durability = server.durability
    if durability is not None and durability.snapshots.status.saved_s >= 0:
        return durability.snapshots.status.saved_s
    return server.startup.started_us // 1_000_000


def _about_log(durability: Durability) -> Fields:
    commit = durability.store.commit
    return [
        ("aof_current_size", durability.store.log_bytes()),
        ("aof_base_size", durability.store.base_bytes),
        ("aof_pending_rewrite", 0),
        ("aof_buffer_length", durability.store.journal.size),
        ("aof_pending_bio_fsync", 0 if commit is None else commit.position - commit.synced),
        ("aof_delayed_fsync", 0),
    ]


def _about_loading(progress: Progress) -> Fields:
    percent = 100 * progress.bytes_done / max(1, progress.bytes_total)
    return [
        ("loading_total_bytes", progress.bytes_total),
        ("loading_loaded_bytes", progress.bytes_done),
        ("loading_loaded_perc", f"{min(100.0, percent):.2f}"),
    ]


def about_stats(server: Server) -> Fields:
    """Counters since the start, or since CONFIG RESETSTAT."""
    rates = server.rates
    child = None if server.durability is None else server.durability.child
    channels = server.engine.context.channels
    fields: Fields = [
        ("total_connections_received", server.next_id - 1),
        ("total_commands_processed", sum(t.calls for t in server.tallies.by_name.values())),
        ("instantaneous_ops_per_sec", rates.ops_per_sec),
        ("total_net_input_bytes", server.bytes_in),
        ("total_net_output_bytes", server.bytes_out),
        ("instantaneous_input_kbps", f"{rates.in_kbps:.2f}"),
        ("instantaneous_output_kbps", f"{rates.out_kbps:.2f}"),
        ("rejected_connections", 0 if server.door is None else server.door.rejected),
        ("sync_full", server.replication.counts.full),
        ("sync_partial_ok", server.replication.counts.partial_ok),
        ("sync_partial_err", server.replication.counts.partial_refused),
        ("expired_keys", server.engine.expired_keys),
        ("evicted_keys", 0),
        ("evicted_clients", server.client_memory.evicted),
        ("pubsub_channels", len(channels.by_name)),
        ("pubsub_patterns", len(channels.by_pattern)),
        ("pubsubshard_channels", len(channels.by_shard_name)),
        ("latest_fork_usec", 0 if child is None else child.fork_us),
        ("total_forks", 0 if child is None else child.forks),
        ("migrate_cached_sockets", 0),
        ("slave_expires_tracked_keys", 0),
        ("tracking_total_keys", 0),
        ("tracking_total_items", 0),
        ("tracking_total_prefixes", 0),
        ("total_error_replies", sum(server.errors.values())),
    ]
    if server.engine.context.compat.counts_denials:
        counts = server.users.log.counts
        fields += [
            (f"acl_access_denied_{short}", counts.get(reason, 0))
            for reason, short in _DENIALS.items()
        ]
    return fields


def about_replication(server: Server) -> Fields:
    """Role, replicas, history."""
    return replication_report.fields(server)


def about_cpu(server: Server) -> Fields:
    """CPU time of the process."""
    system, user = process.cpu_seconds()
    children_system, children_user = process.children_cpu_seconds()
    return [
        ("used_cpu_sys", f"{system:.6f}"),
        ("used_cpu_user", f"{user:.6f}"),
        ("used_cpu_sys_children", f"{children_system:.6f}"),
        ("used_cpu_user_children", f"{children_user:.6f}"),
    ]


def about_modules(server: Server) -> Fields:
    """There are none."""
    return []


def about_commands(server: Server) -> Fields:
    """Counters of each command that was called or rejected."""
    found: Fields = []
    for tally in server.tallies.by_name.values():
        if tally.calls or tally.rejected or tally.failed:
            per_call = tally.us / tally.calls if tally.calls else 0.0
            counted = (
                f"calls={tally.calls},usec={tally.us},usec_per_call={per_call:.2f},"
                f"rejected_calls={tally.rejected},failed_calls={tally.failed},"
                f"quick_calls={tally.quick_calls}"
            )
            found.append((f"cmdstat_{shown_name(tally.command)}", counted))
    return found


def about_errors(server: Server) -> Fields:
    """Error replies by code."""
    return [
        (f"errorstat_{code}", f"count={count}") for code, count in sorted(server.errors.items())
    ]


def about_latency(server: Server) -> Fields:
    """Latency percentiles per command."""
    found: Fields = []
    config = server.config
    if config is not None and not config.value("latency-tracking"):
        return found
    percentiles = PERCENTILES
    if config is not None:
        percentiles = config.value("latency-tracking-info-percentiles")
    for tally in server.tallies.by_name.values():
        if tally.calls and percentiles:
            shown = (f"p{percent:g}={tally.percentile_us(percent):.3f}" for percent in percentiles)
            found.append((f"latency_percentiles_usec_{shown_name(tally.command)}", ",".join(shown)))
    return found


def about_cluster(server: Server) -> Fields:
    """There is none."""
    return [("cluster_enabled", 0)]


def about_keys(server: Server) -> Fields:
    """Databases that are not empty."""
    now_ms = server.engine.context.now_ms()
    found: Fields = []
    for keyspace in server.engine.context.databases:
        if keyspace.values:
            counts = f"keys={len(keyspace.values)},expires={len(keyspace.expires)}"
            ttl_ms = _average_ttl_ms(keyspace, now_ms)
            found.append((f"db{keyspace.index}", f"{counts},avg_ttl={ttl_ms}"))
    return found


def _average_ttl_ms(keyspace: Keyspace, now_ms: int) -> int:
    left = [max(0, at - now_ms) for at in islice(keyspace.expires.values(), TTLS_AVERAGED_MAX)]
    return sum(left) // len(left) if left else 0


def about_penstock(server: Server) -> Fields:
    """Fields that Redis does not have."""
    fields: Fields = [("penstock_version", VERSION), ("penstock_build", KIND)]
    if server.durability is not None and server.config is not None:
        free, size = process.disk_bytes(server.config.value("dir"))
        fields += [("penstock_disk_free_bytes", free), ("penstock_disk_bytes", size)]
        commit = server.durability.store.commit
        if commit is not None and commit.sync_seconds != float("inf"):
            fields.append(("penstock_fsync_usec", round(commit.sync_seconds * 1_000_000)))
    if server.tls is not None and server.tls.expires_s is not None:
        fields.append(("penstock_tls_expiry_sec", server.tls.expires_s))
    return fields


# Title, function, and whether INFO without arguments shows it.
SECTIONS: tuple[tuple[str, Callable[[Server], Fields], bool], ...] = (
    ("Server", about_server, True),
    ("Clients", about_clients, True),
    ("Memory", about_memory, True),
    ("Persistence", about_persistence, True),
    ("Stats", about_stats, True),
    ("Replication", about_replication, True),
    ("CPU", about_cpu, True),
    ("Modules", about_modules, True),
    ("Commandstats", about_commands, False),
    ("Errorstats", about_errors, True),
    ("Latencystats", about_latency, False),
    ("Cluster", about_cluster, True),
    ("Keyspace", about_keys, True),
    ("Penstock", about_penstock, True),
)


def info_text(server: Server, wanted: set[str]) -> str:
    """The requested sections, by their names in lower case, or `default`, `all`, `everything`."""
    everything = bool(wanted & {"all", "everything"})
    texts = []
    for title, fields, by_default in SECTIONS:
        if everything or title.lower() in wanted or (by_default and "default" in wanted):
            lines = [f"# {title}", *(f"{name}:{value}" for name, value in fields(server))]
            texts.append("".join(line + "\r\n" for line in lines))
    return "\r\n".join(texts)
