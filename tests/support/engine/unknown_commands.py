"""Commands that do not exist, and the errors of Redis 7.0 for them."""

from __future__ import annotations

LONG = b"x" * 300

# Words and the error. With long words, the point is where the error text cuts them.
UNKNOWN: list[tuple[list[bytes], str]] = [
    ([b"foo"], "unknown command 'foo', with args beginning with: "),
    ([b"foo", b"a", b"b"], "unknown command 'foo', with args beginning with: 'a' 'b' "),
    ([b"FOO", b""], "unknown command 'FOO', with args beginning with: '' "),
    ([b""], "unknown command '', with args beginning with: "),
    ([b"foo", b"it's"], "unknown command 'foo', with args beginning with: 'it's' "),
    ([b"xgroup|create", b"a"], "unknown command 'xgroup|create', with args beginning with: 'a' "),
    ([b"XGROUP CREATE"], "unknown command 'XGROUP CREATE', with args beginning with: "),
    ([b"foo\0bar", b"a\0b"], "unknown command 'foo', with args beginning with: 'a' "),
    ([b"foo\r\nbar", b"x\ny"], "unknown command 'foo  bar', with args beginning with: 'x y' "),
    ([LONG, b"a"], f"unknown command '{'x' * 128}', with args beginning with: 'a' "),
    ([b"foo", LONG], f"unknown command 'foo', with args beginning with: '{'x' * 128}' "),
    (
        [b"foo", b"x" * 124, b"bc", b"d"],
        f"unknown command 'foo', with args beginning with: '{'x' * 124}' 'b' ",
    ),
    (
        [b"foo", b"x" * 125, b"b"],
        f"unknown command 'foo', with args beginning with: '{'x' * 125}' ",
    ),
    (
        [b"foo", *[b"a"] * 60],
        "unknown command 'foo', with args beginning with: " + "'a' " * 32,
    ),
    ([b"xgroup"], "wrong number of arguments for 'xgroup' command"),
    ([b"XINFO"], "wrong number of arguments for 'xinfo' command"),
    ([b"XGROUP", b"Foo", b"a", b"b"], "unknown subcommand 'Foo'. Try XGROUP HELP."),
    ([b"xinfo", b"x\r\ny"], "unknown subcommand 'x  y'. Try XINFO HELP."),
    ([b"XGROUP", b""], "unknown subcommand ''. Try XGROUP HELP."),
    ([b"XGROUP", LONG], f"unknown subcommand '{'x' * 128}'. Try XGROUP HELP."),
]
