"""The pauses between retries."""

from __future__ import annotations

from penstock.persist import backoff


def pauses(made: backoff.Backoff, at: list[float], count: int) -> list[float]:
    found = []
    for _ in range(count):
        made.note_failure()
        start = at[0]
        while not made.is_due():
            at[0] += 0.5
        found.append(at[0] - start)
    return found


def test_rewrites_wait_as_in_redis() -> None:
    at = [1000.0]
    made = backoff.rewrites(lambda: at[0])
    assert made.is_due()
    assert pauses(made, at, 10) == [0, 0, 60, 120, 240, 480, 960, 1920, 3600, 3600]
    made.note_success()
    assert pauses(made, at, 3) == [0, 0, 60]


def test_fresh_bases_are_tried_soon() -> None:
    at = [0.0]
    assert pauses(backoff.fresh_bases(lambda: at[0]), at, 6) == [1, 2, 4, 8, 10, 10]


def test_years_of_failures_do_not_overflow() -> None:
    made = backoff.rewrites(lambda: 0.0)
    for _ in range(10_000):
        made.note_failure()
    assert not made.is_due()
