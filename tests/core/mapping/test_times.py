"""Times as servers write them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from crosswalk.plugin.state import mistyped
from crosswalk.plugins import look_at_time

NOON = datetime(2026, 1, 1, 12, 0, 0, 123456, UTC)


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2026-01-01T12:00:00.123456Z", NOON),
        ("2026-01-01T12:00:00.123456789Z", NOON),
        ("2026-01-01T14:00:00.123456+02:00", NOON),
        ("2026-01-01 12:00:00.123456Z", NOON),
        ("2026-01-01X12:00:00.123456Z", None),
        ("2026-01-01-12:00:00.123456Z", None),
        ("2026-01-01T12:00:00", None),
        ("9999-12-31T23:59:59-01:00", None),
        ("soon", None),
        ("", None),
        (None, None),
    ],
)
def test_a_time_is_one_with_a_zone_on_the_calendar_and_stays(text: str | None, time: datetime | None) -> None:
    mistyped()  # what others have left
    mistyped()  # what others have left
    event = {"at": text}
    assert look_at_time(event, "at") == time
    assert event == {"at": text}
    assert mistyped() == []


@pytest.mark.parametrize("value", [1767225600, True, {"at": 1}])
def test_what_is_no_text_is_noted_and_stays(value: Any) -> None:
    mistyped()  # what others have left
    mistyped()  # what others have left
    event = {"at": value}
    assert look_at_time(event, "at") is None
    assert mistyped() == [(event, "at")]
    assert event == {"at": value}
