"""The replication of a server, from INFO and ROLE."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.client.replies import array, blob
from penstock.human.show import harmless
from penstock.web.refusal import Refused
from penstock.web.server.asking import ServerClient
from penstock.web.watch.info import Info, number_of, parse_info, parts_of

ROLES = {"master": "primary", "slave": "replica"}


@dataclass(frozen=True, slots=True)
class Replica:
    """A replica of this server. `behind` is in bytes of the replication stream."""

    address: str
    state: str
    offset: int | None
    behind: int | None
    heard_seconds: float | None


@dataclass(frozen=True, slots=True)
class Replication:
    """A server as a primary or replica. `facts` are names and values for people."""

    role: str
    facts: list[tuple[str, str]]
    replicas: list[Replica]
    link_is_down: bool


async def replication_of(server: ServerClient) -> Replication:
    """Ask the server. Raises: Refused, UnexpectedReply, ServerUnreachable."""
    info = parse_info(await server.ask("INFO", "replication"))
    return describe(info, await _role_state(server))


async def _role_state(server: ServerClient) -> str:
    """The state of a replica's link, which only ROLE tells in detail. Empty for others."""
    try:
        reply = array(await server.ask("ROLE"))
    except Refused:
        return ""
    is_replica = len(reply) > 3 and reply[0] == b"slave"
    return harmless(blob(reply[3])) if is_replica else ""


def describe(info: Info, link_state: str = "") -> Replication:
    """The replication as a page shows it."""
    role = ROLES.get(info.get("role", ""), "unknown")
    offset = number_of(info, "master_repl_offset")
    facts = [("role", role)]
    down = False
    if role == "replica":
        down = info.get("master_link_status") != "up"
        facts.append(("primary", f"{info.get('master_host', '?')}:{info.get('master_port', '?')}"))
        facts.append(
            ("link", f"{'down' if down else 'up'}" + (f" ({link_state})" if link_state else ""))
        )
        facts += _known(info, ("last heard, seconds ago", "master_last_io_seconds_ago"))
        offset = number_of(info, "slave_repl_offset") or offset
    if offset is not None:
        facts.append(("offset", f"{offset:,.0f}"))
    facts += _known(
        info, ("replication id", "master_replid"), ("failover", "master_failover_state")
    )
    kept = number_of(info, "repl_backlog_histlen")
    size = number_of(info, "repl_backlog_size")
    if kept is not None and size is not None:
        facts.append(("backlog", f"{kept:,.0f} of {size:,.0f} bytes"))
    shown = [(name, harmless(value)) for name, value in facts]
    return Replication(role, shown, _replicas(info, offset), down)


def _known(info: Info, *wanted: tuple[str, str]) -> list[tuple[str, str]]:
    return [(text, info[name]) for text, name in wanted if info.get(name)]


def _replicas(info: Info, offset: float | None) -> list[Replica]:
    found = []
    for name, value in info.items():
        if not (name.startswith("slave") and name[5:].isdecimal()):
            continue
        sent = parts_of(value)
        reached = number_of(sent, "offset")
        behind = None if reached is None or offset is None else max(0, int(offset - reached))
        found.append(
            Replica(
                address=harmless(f"{sent.get('ip', '?')}:{sent.get('port', '?')}"),
                state=harmless(sent.get("state", "unknown")),
                offset=None if reached is None else int(reached),
                behind=behind,
                heard_seconds=number_of(sent, "lag"),
            )
        )
    return found
