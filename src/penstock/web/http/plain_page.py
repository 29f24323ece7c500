"""Pages without scripts: the login, and "not found"."""

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
<label for="password">Dashboard password</label>
<input id="password" name="password" type="password" autocomplete="current-password" autofocus required>
<input type="hidden" name="next" value="{next}">
<button>Log in</button></form>"""

_NOT_FOUND = """<p>There is no page {path}.</p>
<p><a href="/streams">All streams</a></p>"""


def login_page(target: str, message: str) -> bytes:
    """A form for the password. After the login it redirects to `target`."""
    body = _LOGIN.format(next=html.escape(target), message=html.escape(message))
    return _PAGE.format(title="Log in", body=body).encode()


def not_found_page(path: str) -> bytes:
    """A page for an unknown path, with a link to the streams."""
    body = _NOT_FOUND.format(path=html.escape(path))
    return _PAGE.format(title="Page not found", body=body).encode()
