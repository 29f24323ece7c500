"""Checks that a page works with a screen reader and without a mouse."""

from __future__ import annotations

import re
from typing import Any

# In Chromium's accessibility tree: `- button "Next"`. An element without a name has no quotes.
_NAMELESS = re.compile(
    r"- (button|link|textbox|searchbox|spinbutton|checkbox|radio|switch|table|dialog|img)(?= \[|:|$)"
)


def check_can_be_used_without_eyes(page: Any) -> None:
    """Every control has a name, and the page has a title, a language and a heading."""
    lines = page.locator("body").aria_snapshot().splitlines()
    nameless = [line.strip() for line in lines if _NAMELESS.match(line.strip())]
    assert nameless == [], f"{nameless} of {page.url}"
    assert re.search(r"\w - penstock$", page.title())
    assert page.locator("html").get_attribute("lang") == "en-US"
    assert page.locator("main .view").count() == 1
    assert page.locator("[aria-level='1']").count() == 1
