"""Limits: generous defaults, and no value that means nothing."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from crosswalk.wire import Limits

NAMES = [field.name for field in attrs.fields(Limits)]


def test_defaults_are_the_documented_ones() -> None:
    """The defaults are 64 MiB a line, 200 levels, 10 million events and 4 GiB a stream."""
    assert attrs.asdict(Limits()) == {
        "line_bytes": 64 * 1024**2,
        "depth": 200,
        "events": 10_000_000,
        "total_bytes": 4 * 1024**3,
    }


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [0, -1, 1.5, True, None, "10"])
def test_a_limit_is_a_whole_number_above_zero(name: str, value: Any) -> None:
    """Any other value than a positive int is refused by name: no limit can be switched off by accident."""
    with pytest.raises(ValueError, match=rf"Limits\.{name} must be a whole number above 0"):
        Limits(**{name: value})
