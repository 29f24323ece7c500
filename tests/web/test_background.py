"""Background work goes on after an unexpected error, which is logged."""

from __future__ import annotations

import pytest

from penstock.web import background
from penstock.web.background import keep_running
from tests.support.servers.loops import run_apart


def test_work_that_fails_is_logged_and_starts_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(background, "RESTART_SECONDS", 0)
    runs = 0

    async def run() -> None:
        nonlocal runs
        runs += 1
        if runs < 3:
            raise KeyError(f"fault {runs}")

    run_apart(keep_running("prod: the history", run))
    assert runs == 3
    assert caplog.text.count("prod: the history failed and starts again") == 2
    assert "fault 2" in caplog.text
