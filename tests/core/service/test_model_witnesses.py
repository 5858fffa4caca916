"""The facts about models are compared with three packages that know some of them, where they are installed."""

from __future__ import annotations

import tomllib
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from model_witnesses import WITNESSES, disagreements

ACCEPTED: dict[str, Any] = tomllib.loads(
    (Path(__file__).parents[2] / "model_disagreements.toml").read_text("utf-8")
)


@pytest.mark.sweep
@pytest.mark.parametrize("witness", WITNESSES)
def test_each_disagreement_with_a_witness_is_listed(witness: str) -> None:
    if find_spec(witness) is None:
        pytest.skip(f"{witness} is not installed; {ACCEPTED[witness]['install']}")
    accepted = set(ACCEPTED[witness]["disagreements"])
    found = disagreements(witness)
    assert sorted(found - accepted) == [], "look at each, and correct the row or list the line"
    if _version(witness) == ACCEPTED[witness]["version"]:
        assert sorted(accepted - found) == [], "no longer so"


def _version(witness: str) -> str | None:
    try:
        return version("pydantic-ai-slim" if witness == "pydantic_ai" else witness)
    except PackageNotFoundError:
        return None


def test_each_witness_has_a_list() -> None:
    assert ACCEPTED.keys() == WITNESSES.keys()
    for listed in ACCEPTED.values():
        assert listed["disagreements"] == sorted(set(listed["disagreements"]))
