"""The tables in docs/convert-matrix.md are what conversions lose now. ``python scripts/convert_matrix.py`` writes them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from beside import CAPTURES, needs_captures
from crosswalk import normalize
from crosswalk.convert import ConversionReport, Loss, LossReason, WireForm
from crosswalk.convert.losses import RULES, UNNAMED, rule_of
from wires import body

sys.path.append(str(Path(__file__).parents[1] / "scripts"))
from convert_matrix import PAGE, UnnamedLossError, beside, check_named, current_page


@pytest.mark.sweep
def test_the_tables_are_current_and_every_loss_has_a_name() -> None:
    """If this fails: ``python scripts/convert_matrix.py``, and read the difference."""
    assert current_page() == PAGE.read_text(encoding="utf-8"), "run python scripts/convert_matrix.py"


def test_a_loss_without_a_name_fails() -> None:
    response = normalize(body({"role": "assistant", "content": "Hi"}), "openai")
    assert rule_of("plan", LossReason.DROPPED, response, response) is UNNAMED
    named = Loss("logprobs", LossReason.DROPPED, RULES[0])
    check_named(ConversionReport.of(WireForm.OLLAMA, [named]), "here")
    with pytest.raises(UnnamedLossError, match="here to ollama: no rule names plan: has no place"):
        check_named(ConversionReport.of(WireForm.OLLAMA, [named, Loss("plan", LossReason.DROPPED)]), "here")


def test_rules_have_names_of_their_own() -> None:
    names = [rule.name for rule in RULES]
    assert len(set(names)) == len(names)


def shares_of_each_library() -> list[list[str]]:
    """The cells of the table beside other libraries: the route, the number of answers, Crosswalk's share, the others'."""
    table = PAGE.read_text(encoding="utf-8").partition("## Beside other libraries")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")]
    return [[cell.strip("*") for cell in row] for row in rows[1:]]


def test_in_each_cell_more_comes_back_than_by_any_other_library() -> None:
    rows = shares_of_each_library()
    assert len(rows) == 12
    for route, _, own_share, *others in rows:
        other_shares = [float(share.rstrip("%")) for share in others if share.endswith("%")]
        assert float(own_share.rstrip("%")) > max(other_shares), route


@pytest.mark.sweep
@needs_captures
def test_as_much_comes_back_as_the_table_says() -> None:
    """The shares of the other libraries were measured once, with the versions that the table names."""
    measured = [line.strip("| ").split(" | ") for line in list(beside(CAPTURES / "recorded"))[2:]]
    assert [row[:3] for row in measured] == [row[:3] for row in shares_of_each_library()]
