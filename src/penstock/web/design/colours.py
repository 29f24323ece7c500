"""All colours of the dashboard. A test checks the contrast of texts (4.5 to 1) and graphics (3 to 1).

Charts are drawn for a light background. In dark mode the browser inverts their lightness (CHART_TURN),
because the server does not know which mode the browser shows. `turned` computes the result.
"""

from __future__ import annotations

LIGHT = {
    "ground": "#f4f6f8",
    "card": "#ffffff",
    "raised": "#e8f0fa",  # the current page in the navigation, a selected row
    "text": "#1a222d",
    "muted": "#535e6c",
    "link": "#0d4f9e",
    "warning": "#994000",
    "gone": "#b71c1c",
    "fine": "#17692a",
    "primary": "#0d4f9e",
    "edge": "#7c8795",
    "hairline": "#dde2e8",
    "focus": "#b06000",
    "spark": "#1f6fd0",
}
DARK = {
    "ground": "#10161d",
    "card": "#171e27",
    "raised": "#223044",
    "text": "#e7ebf0",
    "muted": "#a6b1bf",
    "link": "#90caf9",
    "warning": "#ffb74d",
    "gone": "#ffa3a3",
    "fine": "#83d495",
    "primary": "#90caf9",
    "edge": "#7f8b9a",
    "hairline": "#2b3542",
    "focus": "#f9a825",
    "spark": "#64a8f2",
}
GROUNDS = ("ground", "card", "raised")
WRITTEN = ("text", "muted", "link", "warning", "gone", "fine", "primary")  # text, on all grounds
# Graphics and the edges of controls. A hairline only separates and carries no meaning.
DRAWN = ("edge", "focus", "spark", "warning", "gone", "fine")

# Backgrounds of white text.
WRITES, UNREACHABLE, DONE, APPLY, NOTICE = "#994000", "#b71c1c", "#17692a", "#c10015", "#323c48"
ON_BAR = "#ffffff"

CHART_TEXT, CHART_LINK, CHART_EDGE, CHART_FAINT = "#4f5966", "#1565c0", "#66717f", "#cdd4dc"
# The lines of a chart, in this order. They also differ by their dashes.
CHART_SERIES = ("#1f6fd0", "#b85c00", "#00857a", "#b03a9a", "#6f7d00", "#c8323c")
CHART_TURN = "invert(1) hue-rotate(180deg)"

# Pending entries by age, from fresh to old: backgrounds of dark text.
HEAT_TEXT = "#111111"
HEAT = ("#d7e8fb", "#bcd7f5", "#fff0c2", "#ffd98a", "#ffb870", "#ff9b85")

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


def turned(colour: str) -> str:
    """The colour that CHART_TURN shows for a chart's colour, as the browser computes it."""
    red, green, blue = (255 - int(colour[at : at + 2], 16) for at in (1, 3, 5))
    # The matrix of hue-rotate(180deg) in the CSS specification.
    grey = 2 * (0.213 * red + 0.715 * green + 0.072 * blue)
    return "#" + "".join(
        f"{min(255, max(0, round(grey - part))):02x}" for part in (red, green, blue)
    )


def theme_css() -> str:
    """The colours as CSS variables. They override Quasar's, which are in the page's style."""
    return f"""
:root {{ color-scheme: light; }}
body {{ {_variables(LIGHT)} --q-positive: {DONE} !important; --q-negative: {APPLY} !important;
  background: var(--ground); color: var(--text); }}
body.body--dark {{ color-scheme: dark; {_variables(DARK)} background: var(--ground); color: var(--text); }}
body.body--dark canvas {{ filter: {CHART_TURN}; }}
body .q-notification {{ --q-primary: {ON_BAR} !important; }}
.writes {{ background: {WRITES}; color: {ON_BAR}; }}
.viewer {{ background: {NOTICE}; color: {ON_BAR}; }}
.error {{ background: {UNREACHABLE}; color: {ON_BAR}; }}
"""


def heat_css() -> str:
    """A CSS class for each step of a heat map."""
    return "\n".join(
        f".heat.h{step} {{ background: {colour}; color: {HEAT_TEXT}; }}"
        for step, colour in enumerate(HEAT)
    )


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
    return (
        f"{own} --q-primary: {theme['primary']} !important; --q-dark: {theme['card']} !important;"
    )
