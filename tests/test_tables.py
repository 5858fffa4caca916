"""The crosswalk tables in docs/ are what the mapping does now; ``scripts/tables`` writes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from crosswalk.cli import main
from crosswalk.plugin.registry import registry

ROOT = Path(__file__).parents[1]


PROVIDERS = sorted(folder.name for folder in (ROOT / "tests/captures").iterdir() if folder.is_dir())
LONG = ("llamacpp", "openai_responses", "sglang", "vllm")
"""The longest ones take as long as all others together."""


def test_every_provider_has_a_table() -> None:
    assert registry.names() == PROVIDERS


@pytest.mark.sweep
@pytest.mark.parametrize(
    "provider",
    [pytest.param(name, marks=pytest.mark.thorough) if name in LONG else name for name in PROVIDERS],
)
def test_the_table_is_current(provider: str, capsys: pytest.CaptureFixture[str]) -> None:
    captures = ROOT / "tests/captures" / provider
    status = main(["table", provider, "--format", "markdown", str(captures)])
    written = capsys.readouterr().out
    assert status == 0
    page = ROOT / f"docs/crosswalk-{provider}.md"
    assert written == page.read_text(encoding="utf-8"), f"{page} is stale: run scripts/tables"
