"""JSON has no largest number: no API promises hundreds of digits, and yet no plugin may choke on them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from converting import broad_first
from crosswalk import CrosswalkError, normalize
from crosswalk.testing import load_captures

OWN = Path(__file__).parents[1] / "captures"
NUMBER = re.compile(rb'"(\w+)": ?\[?(-?\d[\d.eE+-]*)')


@pytest.mark.parametrize("provider", broad_first(sorted(one.name for one in OWN.iterdir() if one.is_dir())))
def test_a_number_of_any_length_breaks_no_plugin(provider: str) -> None:
    """If it decides nothing it stays as it was sent. Otherwise the error names the expected type in its place."""
    tried = 0
    for capture in load_captures(OWN / provider):
        first = {found[1]: found.span(2) for found in reversed([*NUMBER.finditer(capture.body)])}
        for start, end in first.values():
            body = capture.body[:start] + b"9" * 400 + capture.body[end:]
            try:
                normalize(body, provider, status=capture.status)
            except CrosswalkError as error:
                assert "the plugin failed" not in str(error), (capture.case, body[start - 40 : start])
            tried += 1
    assert tried
