"""Every capture that lies beside the project, from where it lies: hundreds of real answers that may not be copied in.

The folder is ``$CROSSWALK_CAPTURES``, by default ``../shared/captures`` beside the project. Where it is absent these
tests skip. They try a seeded sample of leaves; ``pytest tests/providers --crosswalk-sample all -s`` tries them all.
"""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path

import pytest

from crosswalk.plugin import registry
from crosswalk.testing import Capture, Tally, check_capture, check_pair, load_captures, pairs
from known_differences import UNEQUAL_PAIRS

ROOT = Path(__file__).parents[2]
CAPTURES = Path(os.environ.get("CROSSWALK_CAPTURES", ROOT / "../shared/captures")).resolve()
SAMPLE = 4

NATIVE = ("/api/chat", "/api/generate")
OPENAI = ("/v1/chat/completions", "/v1/completions", "/v1/chat/completions/batch")
LIVE = {
    "ollama": {"ollama": NATIVE + OPENAI, "ollama-gotemplate": NATIVE},
    "vllm": {"vllm": OPENAI, "vllm-reasoning": OPENAI, "vllm-force-usage": OPENAI},
}
RECORDED = {"ollama": ("ollama",), "vllm": ("vllm",)}

pytestmark = pytest.mark.skipif(
    not CAPTURES.is_dir(), reason=f"no captures beside the project ({CAPTURES.name} is absent)"
)


def folders() -> list[tuple[str, str]]:
    """Each provider with each folder that holds answers of its own."""
    found = [(name, f"live/{server}") for name, servers in LIVE.items() for server in servers]
    for name, apis in RECORDED.items():
        found += [(name, f"recorded/{api}/{kind}") for api in apis for kind in ("full", "stream", "error")]
    found.append(("ollama", "recorded/other-openai-compat/full"))
    found.append(("ollama", "recorded/other-openai-compat/stream"))
    return found


def captures_in(provider: str, folder: str) -> list[Capture]:
    paths = LIVE[provider].get(folder.removeprefix("live/"), ())
    found = load_captures(CAPTURES / folder, paths=paths)
    return [c for c in found if "other-" not in folder or served_by(c) == provider]


def served_by(capture: Capture) -> str:
    """Which server a published recording names."""
    return servers_of_recordings()[str(capture.file.relative_to(CAPTURES / "recorded"))]


@functools.cache
def servers_of_recordings() -> dict[str, str]:
    lines = (CAPTURES / "recorded/MANIFEST.jsonl").read_text(encoding="utf-8").splitlines()
    return {entry["file"]: entry["served_by"] for entry in map(json.loads, lines)}


@pytest.mark.parametrize(("provider", "folder"), folders(), ids=lambda value: str(value))
def test_every_capture_keeps_the_promises(
    provider: str, folder: str, request: pytest.FixtureRequest, record_property: object
) -> None:
    """P1 to P5 and P8 hold for every capture of the provider's chat, generate and completions endpoints."""
    mapper = registry.mapper(provider)
    given = request.config.getoption("--crosswalk-sample")
    sample = SAMPLE if given is None else None if given == "all" else int(given)
    tally, problems = Tally(), []
    found = captures_in(provider, folder)
    for capture in found:
        problems += check_capture(mapper, capture, sample=sample, tally=tally)
    for whole, streamed in pairs(found):
        if f"{whole.file.parent.name}/{whole.pair}" not in UNEQUAL_PAIRS:
            problems += check_pair(mapper, whole, streamed)
    print(f"\n{provider} {folder}: {tally}")
    assert found
    assert not problems, "\n".join(str(problem) for problem in problems)


def test_every_known_difference_is_still_one() -> None:
    """The list of exceptions holds nothing that has become equal, or that is not there."""
    unequal = set()
    for provider, servers in LIVE.items():
        for server in servers:
            for whole, streamed in pairs(captures_in(provider, f"live/{server}")):
                if check_pair(registry.mapper(provider), whole, streamed):
                    unequal.add(f"{server}/{whole.pair}")
    assert unequal == set(UNEQUAL_PAIRS)
