"""A JSON value as an HTML tree that opens and closes, without scripts.

    <details open><summary>"customer": {2}</summary> ... </details>

All text is escaped. Numbers keep their digits and repeated names are all shown, as in the text view.
"""

from __future__ import annotations

import html

from penstock.web.model.values import JsonLiteral, JsonObject, json_string, parse_json_or_none

LEAVES_MAX = 2000
OPEN_DEPTH = 3


def json_tree_or_none(value: bytes) -> str | None:
    """HTML for an object or array, or None if the value is not JSON or too large for a tree."""
    parsed = parse_json_or_none(value)
    if not isinstance(parsed, JsonObject | list):
        return None
    budget = [LEAVES_MAX]
    made = _branch("", parsed, 0, budget)
    return None if budget[0] < 0 else f'<div class="tree">{made}</div>'


def _branch(name: str, value: object, depth: int, budget: list[int]) -> str:
    budget[0] -= 1
    if budget[0] < 0:
        return ""
    label = f'<span class="name">{html.escape(name)}</span>: ' if name else ""
    if isinstance(value, JsonObject) and value:
        inner = [_branch(json_string(key), item, depth + 1, budget) for key, item in value]
        return _details(label, f"{{{len(value)}}}", inner, depth)
    if isinstance(value, list) and value:
        inner = [_branch("", item, depth + 1, budget) for item in value]
        return _details(label, f"[{len(value)}]", inner, depth)
    return f"<div>{label}{html.escape(_leaf(value))}</div>"


def _details(label: str, size: str, inner: list[str], depth: int) -> str:
    shown = " open" if depth < OPEN_DEPTH else ""
    return f"<details{shown}><summary>{label}{size}</summary>{''.join(inner)}</details>"


def _leaf(value: object) -> str:
    if isinstance(value, JsonObject):
        return "{}"
    if isinstance(value, list):
        return "[]"
    if isinstance(value, JsonLiteral):
        return str(value)
    if isinstance(value, str):
        return json_string(value)
    return {None: "null", True: "true", False: "false"}[value]  # type: ignore[index]
