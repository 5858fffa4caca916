"""Crosswalk before wiretruth (https://pypi.org/project/wiretruth), which replays answers through a library and grades what the library reports.

Its package has the replay server, the grades and a reader of its own for each API, which states the truth of an answer. Its
suite is not in the package. So the cells here are captures of this project. Name a clone of its repository in
``CROSSWALK_WIRETRUTH`` to run its own suite as well.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.sweep  # a process for each cell

ROOT = Path(__file__).parents[3]
SHIM = ROOT / "tests/neighbours"
APIS = {
    "openai": "openai-chat",
    "openai_responses": "openai-responses",
    "anthropic": "anthropic",
    "gemini": "gemini",
    "ollama": "ollama",
}
PATHS = {
    "openai-chat": ("/v1/chat/completions",),
    "openai-responses": ("/v1/responses",),
    "anthropic": ("/v1/messages",),
    "gemini": (":generateContent", ":streamGenerateContent"),
    "ollama": ("/api/chat",),
}
REQUIREMENTS = (
    ("text", "text_matches_truth", {}),
    ("calls", "tool_calls_match_truth", {}),
    ("usage", "usage_matches_truth", {"fields": ["input", "output"]}),
    ("raw", "raw_finish_matches_truth", {}),
)


def captures() -> dict[str, tuple[str, dict[str, Any]]]:
    """The complete captures of the APIs that wiretruth knows, by name, with the API and the line of the manifest."""
    found = {}
    for provider, api in APIS.items():
        folder = ROOT / "tests/captures" / provider
        for line in (folder / "MANIFEST.jsonl").read_text().splitlines():
            entry = json.loads(line)
            if entry["complete"] and entry["status"] == 200 and entry["path"].endswith(PATHS[api]):
                found[f"{provider}/{entry['file']}"] = (api, entry)
    return found


CAPTURES = captures()
OTHERWISE = {
    "wiretruth's reader does not read it": """
        anthropic/llama_tool_parallel_stream gemini/array_stream""",
    "wiretruth's reader loses calls of custom tools and patches, arguments in pieces, and those of the start of a block": """
        anthropic/made_thinking_tools_stream anthropic/made_whole_start_stream gemini/vertex_arguments_stream
        openai/made_custom_tool openai_responses/openai_patch openai_responses/openai_patch_stream
        openai_responses/openai_reasoning_calls openai_responses/openai_reasoning_calls_stream""",
    "wiretruth's reader joins two answers": "gemini/candidates_stream",
    "wiretruth's reader does not know the reason in another field": """
        gemini/blocked gemini/blocked_stream openai/made_finish_details""",
    "wiretruth's reader takes no failure, where the words or the end of a stream say one": """
        gemini/malformed_call gemini/malformed_call_stream openai_responses/ollama_crash_stream""",
    "debatable: tokens of a tool's result are part of the prompt, as they are paid for": """
        gemini/grounded gemini/grounded_stream""",
    "debatable: a word of moderation that wiretruth does not list": "gemini/filtered",
    "debatable: an answer in a queue is not whole, and neither library has a word for it": "openai_responses/vllm_background",
    "debatable: Ollama loaded a model or showed a prompt, and nothing was cut": """
        ollama/chat_load_empty_messages ollama/chat_load_empty_messages_stream ollama/go_chat_debug_render_only
        ollama/go_chat_debug_render_only_stream""",
}
"""The captures that wiretruth 0.2 reads in another way, by the reason. Everything else passes."""
LISTED = {name for names in OTHERWISE.values() for name in names.split()}


def cell_of(name: str, folder: Path) -> Any:
    """The cell of wiretruth's for the capture *name*, with the documents that describe it written into *folder*."""
    formats = pytest.importorskip("wiretruth.formats", reason="wiretruth is not installed")
    from wiretruth.providers import PROVIDERS
    from wiretruth.runner import Cell

    api, entry = CAPTURES[name]
    content = (ROOT / "tests/captures" / name).read_text()
    if entry["stream"] and name.endswith(".sse"):
        body: dict[str, Any] = {"text": content}
    elif entry["stream"]:
        body = {"ndjson": content.splitlines()}
    else:
        body = {"json": json.loads(content)}
    exchange = {
        "match": {"method": "POST", "path": "/*"},
        "response": {"status": 200, "headers": {"content-type": entry["content_type"]}, "body": body},
    }
    truth = PROVIDERS[api].extract_truth([formats.build_exchange(exchange)], None)
    scenario = {
        "format": "wiretruth.scenario/v1",
        "id": "finish.capture",
        "title": name,
        "bug_class": "capture",
        "priority": "P0",
        "summary": name,
        "call": {"stream": entry["stream"], "messages": [{"role": "user", "content": "Hi"}]},
        "providers": [api],
        "requirements": [
            {"id": id, "level": "MUST", "check": check, "args": args, "text": id}
            for id, check, args in (
                *REQUIREMENTS,
                ("finish", "finish_is", {"value": truth["finish"]}),
                ("outcome", f"outcome_is_{'returned' if truth['error'] is None else 'error'}", {}),
            )
        ],
    }
    fixture = {
        "format": "wiretruth.fixture/v1",
        "id": f"{api}/finish.capture",
        "scenario": "finish.capture",
        "provider": api,
        "tier": "documented",
        "provenance": {"requested_model": "m", "source_url": "https://example.com", "notes": "A capture."},
        "derived_from": None,
        "exchanges": [exchange],
        "truth": truth,
    }
    for kind, document in (("scenario", scenario), ("fixture", fixture)):
        (folder / f"{kind}.json").write_text(json.dumps(document))
    return Cell(
        formats.load_scenario(folder / "scenario.json"), api, formats.load_fixture(folder / "fixture.json")
    )


@pytest.mark.parametrize("name", CAPTURES)
def test_a_capture_is_reported_as_wiretruths_own_reader_reads_it(name: str, tmp_path: Path) -> None:
    pytest.importorskip("wiretruth.runner", reason="wiretruth is not installed")
    from wiretruth.formats import load_shim_manifest
    from wiretruth.runner import closed_port, run_cell

    listed = name.partition(".")[0] in LISTED
    try:
        cell = cell_of(name, tmp_path)
    except ValueError:  # of wiretruth's reader
        assert listed
        return
    with closed_port() as port:
        result = run_cell(
            cell,
            shim_dir=SHIM,
            manifest=load_shim_manifest(SHIM / "wiretruth-shim.json"),
            stderr_dir=tmp_path,
            reserved_port=port,
            timeout=60,
            interpreter=sys.executable,
        )
    unmet = {one.id: one.evidence for one in result.grade.requirements if one.status != "SATISFIED"}
    assert (result.grade.grade != "PASS", bool(unmet)) == (listed, listed), (result.grade.grade, unmet)
    assert result.grade.grade in ("PASS", "LOSSY", "WRONG")  # never a crash


@pytest.mark.skipif("CROSSWALK_WIRETRUTH" not in os.environ, reason="CROSSWALK_WIRETRUTH names no clone")
def test_the_suite_of_wiretruth_passes() -> None:
    pytest.importorskip("wiretruth.runner", reason="wiretruth is not installed")
    from wiretruth.formats import load_shim_manifest
    from wiretruth.runner import closed_port, find_cells, run_cell

    root, manifest = (
        Path(os.environ["CROSSWALK_WIRETRUTH"]),
        load_shim_manifest(SHIM / "wiretruth-shim.json"),
    )
    (root / ".wiretruth").mkdir(exist_ok=True)
    grades = {}
    with closed_port() as port:
        for cell in find_cells(root):
            result = run_cell(
                cell,
                shim_dir=SHIM,
                manifest=manifest,
                stderr_dir=root / ".wiretruth",
                reserved_port=port,
                interpreter=sys.executable,
            )
            grades[cell.fixture.id] = result.grade.grade
    assert {id: grade for id, grade in grades.items() if grade != "PASS"} == {}
