"""Pages that scripts write are current: those of the providers and of the gateway's file."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from crosswalk.cli import main
from crosswalk.plugin.registry import registry

sys.path.append(str(Path(__file__).parents[1] / "scripts"))
from provider_pages import ROOT, head, page
from serve_configuration import PAGE, current_page

PROVIDERS = sorted(folder.name for folder in (ROOT / "tests/captures").iterdir() if folder.is_dir())
LONG = ("llamacpp", "openai_responses", "sglang", "vllm")
"""The longest ones take as long as all others together."""


def test_every_provider_has_a_table() -> None:
    assert registry.names() == PROVIDERS


@pytest.mark.sweep
@pytest.mark.parametrize(
    "provider",
    [pytest.param(name, marks=pytest.mark.sweep) if name in LONG else name for name in PROVIDERS],
)
def test_the_table_is_current(provider: str, capsys: pytest.CaptureFixture[str]) -> None:
    captures = ROOT / "tests/captures" / provider
    status = main(["table", provider, "--format", "markdown", str(captures)])
    written = capsys.readouterr().out
    assert status == 0
    path = ROOT / f"docs/crosswalk-{provider}.md"
    assert page(provider, written) == path.read_text(encoding="utf-8"), (
        f"{path} is stale: run scripts/provider_pages.py"
    )


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_page_begins_with_address_key_and_notes(provider: str) -> None:
    begin = head(provider)
    assert (ROOT / f"docs/crosswalk-{provider}.md").read_text(encoding="utf-8").startswith(begin)
    assert "| Address | " in begin
    assert "| API key | " in begin
    assert "\n- " in begin


def test_the_page_of_the_gateways_file_is_current() -> None:
    assert current_page() == PAGE.read_text(encoding="utf-8"), "run scripts/serve_configuration.py"
