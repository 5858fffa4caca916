"""Every capture of Converse and ConverseStream that lies beside the project, from where it lies.

As ``tests/providers/test_all_captures.py``: the folder is ``$CROSSWALK_CAPTURES``, by default ``../shared/captures``; without
it these tests skip. ``pytest tests/contrib/test_all_bedrock.py --crosswalk-sample all -s`` tries every leaf. The
bodies of InvokeModel are their vendors' own: ``test_all_anthropic.py`` and ``test_all_cohere.py`` read them.
"""

from __future__ import annotations

import os
from pathlib import Path

import orjson
import pytest

from crosswalk import Recognition, normalize
from crosswalk.plugin import registry
from crosswalk.testing import Capture, Tally, check_capture, load_captures
from crosswalk_bedrock import plugin

ROOT = Path(__file__).parents[2]
CAPTURES = Path(os.environ.get("CROSSWALK_CAPTURES", ROOT / "../shared/captures")).resolve()
SAMPLE = 3

pytestmark = pytest.mark.skipif(
    not CAPTURES.is_dir(), reason=f"no captures beside the project ({CAPTURES.name} is absent)"
)

FOLDERS = ("full", "stream", "error")


def recorded(folder: str) -> list[Capture]:
    return load_captures(CAPTURES / "recorded/bedrock-converse" / folder)


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_recording_keeps_the_promises(folder: str, request: pytest.FixtureRequest) -> None:
    given = request.config.getoption("--crosswalk-sample")
    sample = SAMPLE if given is None else None if given == "all" else int(given)
    tally, problems, found = Tally(), [], recorded(folder)
    for capture in found:
        problems += check_capture(registry.mapper("bedrock"), capture, sample=sample, tally=tally)
    print(f"\nbedrock {folder}: {tally}")
    assert found
    assert not problems, "\n".join(str(problem) for problem in problems)


def test_every_stream_reads_the_same_from_frames_with_names() -> None:
    """As the wire has them: the inner event, and its name beside it."""
    for capture in recorded("stream"):
        framed = b"".join(
            b"event: %b\ndata: %b\n\n" % (name.encode(), orjson.dumps(payload))
            for event in capture.events()
            for name, payload in event.items()
            if not name.startswith("amazon-bedrock-")
        )
        wrapped = normalize(capture.body, "bedrock")
        assert normalize(framed, "bedrock").message == wrapped.message
        assert normalize(framed, "bedrock").usage == wrapped.usage


@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        ("full", Recognition.CERTAIN),
        ("stream", Recognition.CERTAIN),
        ("error", Recognition.POSSIBLE),
    ],
)
def test_every_answer_is_recognized(folder: str, expected: Recognition) -> None:
    for capture in recorded(folder):
        found = max(Recognition(plugin.recognizes(event) or 0) for event in capture.events()[:50])
        assert found is expected, capture.case
