"""Pages without scripts: for those who are not in yet, and for addresses that lead nowhere."""

from __future__ import annotations

import html

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title} - penstock</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>:root{{color-scheme:light dark}}body{{background:Canvas;font:1rem/1.5 system-ui,sans-serif;
margin:20vh auto;max-width:20rem;padding:0 1rem}}input,button{{font:inherit;width:100%;padding:.5rem;
margin:.25rem 0;box-sizing:border-box}}</style>
</head><body><main><h1>{title}</h1>{body}</main></body></html>"""

_LOGIN = """<form method="post" action="/login">
<p role="alert">{message}</p>
<label for="password">Password of this dashboard</label>
<input id="password" name="password" type="password" autocomplete="current-password" autofocus required>
<input type="hidden" name="next" value="{next}">
<button>Log in</button></form>"""

_NOWHERE = """<p>There is no page {path} here.</p>
<p><a href="/streams">All streams</a></p>"""


def login_page(target: str, message: str) -> bytes:
    """Asks for the password, and then goes on to `target`."""
    body = _LOGIN.format(next=html.escape(target), message=html.escape(message))
    return _PAGE.format(title="Log in", body=body).encode()


def nowhere_page(path: str) -> bytes:
    """Says so, and shows the way to what there is."""
    body = _NOWHERE.format(path=html.escape(path))
    return _PAGE.format(title="No such page", body=body).encode()
