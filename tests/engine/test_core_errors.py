"""Every exception of core has a Redis error reply."""

from __future__ import annotations

import pytest

from penstock.engine.execute import worded
from penstock.errors import CommandError, CoreError


@pytest.mark.parametrize("kind", CoreError.__subclasses__())
def test_every_exception_of_core_has_an_error_reply(kind: type[CoreError]) -> None:
    reply = worded(kind("the reason"))
    assert isinstance(reply, CommandError)
    assert reply.code == "ERR"
    assert "the reason" not in str(reply)
