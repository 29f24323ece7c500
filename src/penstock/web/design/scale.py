"""One scale of spacing and one of type, as CSS variables, and the fonts. Charts use the same sizes and fonts.

--s1 4px  --s2 8px  --s3 12px  --s4 16px  --s5 24px  --s6 32px
--t1 12px --t2 14px --t3 16px  --t4 20px  --t5 26px
"""

from __future__ import annotations

SPACES = (4, 8, 12, 16, 24, 32)
TYPES = (12, 14, 16, 20, 26)
FONT = "Roboto, sans-serif"
MONO = 'ui-monospace, "DejaVu Sans Mono", monospace'
# Below this width tables become cards and the navigation becomes a drawer.
NARROW = 599
DRAWER_BELOW = 899
NAVIGATION = 192


def scale_css() -> str:
    """The scales as CSS variables."""
    spaces = " ".join(f"--s{place}: {size}px;" for place, size in enumerate(SPACES, 1))
    types = " ".join(f"--t{place}: {size}px;" for place, size in enumerate(TYPES, 1))
    return f":root {{ {spaces} {types} }}\n"
