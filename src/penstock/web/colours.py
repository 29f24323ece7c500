"""All colours of the dashboard. A test checks the contrast of every text with its background.

Charts are drawn for a light background. In dark mode the browser inverts their lightness (CHART_TURN),
because no single grey is legible on both backgrounds.
"""

from __future__ import annotations

LIGHT = {
    "ground": "#ffffff",
    "card": "#ffffff",
    "link": "#0d4f9e",
    "warning": "#a84300",
    "gone": "#b71c1c",
    "primary": "#0d4f9e",
}
DARK = {
    "ground": "#121212",
    "card": "#1d1d1d",
    "link": "#90caf9",
    "warning": "#ffb74d",
    "gone": "#ef9a9a",
    "primary": "#90caf9",
}
WRITTEN = ("link", "warning", "gone", "primary")  # text colours, on the ground and on cards

# Backgrounds of white text.
BAR, WRITES, UNREACHABLE, DONE, APPLY = "#1d1d1d", "#a84300", "#b71c1c", "#1b7a2f", "#c10015"
ON_BAR = "#ffffff"

CHART_TEXT, CHART_LINK, CHART_FAINT = "#5c5c5c", "#1565c0", "rgba(128,128,128,0.3)"
CHART_TURN = "invert(1) hue-rotate(180deg)"

# The bytes of a node, by role.
PIECE_TEXT = "#111111"
PIECES = {
    "": "#dddddd",
    "total": "#b0bec5",
    "count": "#b0bec5",
    "end": "#b0bec5",
    "live": "#90caf9",
    "deleted": "#90caf9",
    "header-fields": "#90caf9",
    "header-end": "#90caf9",
    "fields": "#90caf9",
    "header-name": "#a5d6a7",
    "name": "#a5d6a7",
    "flags": "#fff59d",
    "ms-distance": "#ce93d8",
    "seq-distance": "#ce93d8",
    "value": "#ffcc80",
    "pieces": "#80deea",
    "damage": "#ef5350",
}


def theme_css() -> str:
    """The colours as CSS variables. They override Quasar's, which are in the page's style."""
    return f"""
:root {{ color-scheme: light; }}
body {{ {_variables(LIGHT)} --q-positive: {DONE} !important; --q-negative: {APPLY} !important; }}
body.body--dark {{ color-scheme: dark; {_variables(DARK)} background: {DARK["ground"]}; }}
body.body--dark canvas {{ filter: {CHART_TURN}; }}
body .q-notification {{ --q-primary: {ON_BAR} !important; }}
"""


def pieces_css() -> str:
    """A CSS class for each kind of bytes."""
    lines = [f".p {{ color: {PIECE_TEXT}; }}"]
    for kind, colour in PIECES.items():
        lines.append(f".p{f'.{kind}' if kind else ''} {{ background-color: {colour}; }}")
    # Paler by a gradient: opacity would also change the text.
    lines.append(".p.k-backlen { background-image: linear-gradient(rgba(255,255,255,.6) 0 0); }")
    return "\n".join(lines)


def _variables(theme: dict[str, str]) -> str:
    own = " ".join(f"--{name}: {colour};" for name, colour in theme.items())
    return f"{own} --q-primary: {theme['primary']} !important;"
