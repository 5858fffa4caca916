"""Every field of a request reaches every format that has a word for it. A loss counts as the table says."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from crosswalk.service import UnsupportedRequestError

sys.path.append(str(Path(__file__).parents[3] / "scripts"))
from convert_matrix import FIELDS, FORMATS, UnnamedLossError, requests_table, sent


@pytest.fixture(params=FIELDS, ids=[f"{row['from']}-{','.join(row['send'])}" for row in FIELDS])
def row(request: pytest.FixtureRequest) -> Any:
    """A field as a client sends it, and what each format has of it."""
    return request.param


def test_a_field_reaches_each_format(row: dict[str, Any]) -> None:
    for target in row.keys() - {"from", "send"}:
        check_field(row, target)


def check_field(row: dict[str, Any], target: str) -> None:
    """Check that *target* gets the field of *row*, or that its loss counts as the row says."""
    wanted, provider = row[target], FORMATS[target][0].provider if target in FORMATS else target
    if wanted == "dangerous":
        with pytest.raises(UnsupportedRequestError, match="cannot|must be"):
            sent(row, provider)
        return
    built = sent(row, provider)
    if isinstance(wanted, dict):
        assert missing(wanted, built.body) == []
    reported = [
        (dropped.field, dropped.reason) for dropped in built.adaptations if dropped.kind.value != "defaulted"
    ]
    assert bool(reported) is (wanted == "changed"), reported


def test_a_field_reaches_its_own_format_as_it_was_sent(row: dict[str, Any]) -> None:
    built = sent(row, FORMATS[row["from"]][0].provider)
    assert built.dropped == ()
    assert missing(row["send"], built.body) == []


def missing(wanted: Any, found: Any, path: str = "") -> list[str]:
    """The paths at which *found* does not hold what is *wanted*."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        inner = [
            missing(value, found.get(name), f"{path}.{name}".removeprefix("."))
            for name, value in wanted.items()
        ]
    elif isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        pairs = zip(wanted, found, strict=True)
        inner = [missing(one, other, f"{path}[{number}]") for number, (one, other) in enumerate(pairs)]
    else:
        return [] if wanted == found else [f"{path}: {found!r}, not {wanted!r}"]
    return [problem for problems in inner for problem in problems]


def test_the_table_is_large_enough() -> None:
    assert len(FIELDS) >= 120
    assert {row["from"] for row in FIELDS} == FORMATS.keys()


def test_a_loss_that_the_table_does_not_name_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    row = {"from": "chat", "send": {"metadata": {"a": "b"}}, **{name: {} for name in FORMATS}}
    monkeypatch.setattr("convert_matrix.FIELDS", [row])
    with pytest.raises(UnnamedLossError, match="chat to messages: metadata: Messages has no such option"):
        [*requests_table()]
