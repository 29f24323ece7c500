"""What a server says about its replication: INFO replication, ROLE."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.server.replication.replicas import SHOWN

if TYPE_CHECKING:
    from penstock.server.replication.primary_link import PrimaryLink
    from penstock.server.server import Server

Fields = list[tuple[str, object]]


def fields(server: Server) -> Fields:
    """The fields of INFO replication, in Redis's order."""
    replication = server.replication
    history, backlog = replication.feed.history, replication.feed.backlog
    found: Fields = [("role", "master" if replication.is_primary else "slave")]
    if replication.link is not None:
        found += _link_fields(server, replication.link)
    replicas = replication.replicas.all()
    found.append(("connected_slaves", len(replicas)))
    if server.config is not None and server.config.value("min-replicas-to-write"):
        lag = server.config.value("min-replicas-max-lag")
        found.append(("min_slaves_good_slaves", replication.replicas.good(lag)))
    now_ms = server.steady_ms()
    for number, replica in enumerate(replicas):
        ip, port = replica.address
        lag_s = (now_ms - replica.acked_ms) // 1000 if replica.is_online else 0
        state = SHOWN.get(replica.state, "send_bulk")
        text = f"ip={ip},port={port},state={state},offset={replica.acked},lag={lag_s}"
        found.append((f"slave{number}", text))
    found += [
        ("master_failover_state", replication.failover.state),
        ("master_replid", history.id),
        ("master_replid2", history.second_id),
        ("master_repl_offset", history.offset),
        ("second_repl_offset", history.second_offset),
        ("repl_backlog_active", int(backlog is not None)),
        ("repl_backlog_size", replication.feed.backlog_bytes),
        ("repl_backlog_first_byte_offset", 0 if backlog is None else backlog.first),
        ("repl_backlog_histlen", 0 if backlog is None else backlog.size),
    ]
    return found


def _link_fields(server: Server, link: PrimaryLink) -> Fields:
    offset = server.replication.feed.history.offset
    now_ms = server.steady_ms()
    found: Fields = [
        ("master_host", link.host),
        ("master_port", link.port),
        ("master_link_status", "up" if link.is_up else "down"),
        ("master_last_io_seconds_ago", (now_ms - link.io_ms) // 1000 if link.is_up else -1),
        ("master_sync_in_progress", int(link.state == "sync")),
        ("slave_read_repl_offset", offset),
        ("slave_repl_offset", offset),
    ]
    file = link.sync_file
    if link.state == "sync":
        total = 0 if file is None else file.size or 0
        read = 0 if file is None else file.received
        left = max(0, total - read) if total else -1
        found += [
            ("master_sync_total_bytes", total),
            ("master_sync_read_bytes", read),
            ("master_sync_left_bytes", left),
            ("master_sync_perc", f"{100 * read / total if total else 0:.2f}"),
            ("master_sync_last_io_seconds_ago", (now_ms - link.io_ms) // 1000),
        ]
    if not link.is_up:
        found.append(("master_link_down_since_seconds", (now_ms - link.down_since_ms) // 1000))
    if link.problem:
        found.append(("master_link_problem", link.problem.replace("\n", " ").replace("\r", " ")))
    config = server.config
    assert config is not None
    foreign = server.replication.foreign
    # What was skipped is not remembered over a restart: such a replica is never promoted.
    skips = foreign.is_any or config.value("replica-foreign-types") == "skip"
    found += [
        ("slave_priority", 0 if skips else config.value("replica-priority")),
        ("slave_read_only", int(config.value("replica-read-only"))),
        ("replica_announced", int(config.value("replica-announced"))),
    ]
    if foreign.is_any:
        found.append(("replica_foreign_keys_skipped", len(foreign.keys)))
        found.append(("replica_foreign_commands_skipped", foreign.commands))
    return found


def role(server: Server) -> list[Any]:
    """The reply of ROLE."""
    replication = server.replication
    offset = replication.feed.history.offset
    link = replication.link
    if link is None:
        replicas = [
            [ip.encode(), b"%d" % port, b"%d" % one.acked]
            for one in replication.replicas.online()
            for ip, port in (one.address,)
        ]
        return [b"master", offset, replicas]
    reached = offset if link.state == "connected" else -1
    return [b"slave", link.host.encode(), link.port, link.state.encode(), reached]
