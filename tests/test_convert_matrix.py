"""The tables in docs/convert-matrix.md are what conversions lose now. ``python scripts/convert_matrix.py`` writes them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from crosswalk import normalize
from crosswalk.convert import ConversionReport, Loss, LossReason, WireForm
from crosswalk.convert.losses import RULES, UNNAMED, rule_of
from wires import body

sys.path.append(str(Path(__file__).parents[1] / "scripts"))
from convert_matrix import PAGE, UnnamedLossError, check_named, current_page


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
