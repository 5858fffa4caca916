"""Crosswalk and lm15 answer the same lines of lm15's ``vet`` protocol, and each disagreement is listed with its reason.

lm15's own corpus is not in its package. Name a clone of ``lm15-contract``, or the folder ``conformance`` of lm15, in
``CROSSWALK_LM15`` to read it as well.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from neighbours.vet import PROVIDERS, reply

pytestmark = pytest.mark.sweep

ROOT = Path(__file__).parents[3]
ENDS = ("/chat/completions", "/responses", "/messages", ":generateContent", ":streamGenerateContent")
REQUEST = {"model": "m", "messages": [{"role": "user", "parts": [{"type": "text", "text": "Hi"}]}]}

DISAGREEMENTS = {
    "lm15 reads a summary of the reasoning, and not its text": """
        openai_responses/llamacpp_think openai_responses/sglang_think openai_responses/vllm_reasoning_parts
        openai_responses/vllm_tool_named""",
    "lm15 does not know why the answer ended, or that it has not": """
        gemini/filtered openai/made_finish_details openai_responses/vllm_background openai_responses/vllm_incomplete_stream
        openai_responses/vllm_logprobs_stream vllm/reasoning_vllm_repetition_detection
        vllm/reasoning_vllm_repetition_detection_stream zai/made_sensitive_stream zai/made_window""",
    "lm15 raises where the model gave an answer, or a filter refused one": """
        anthropic/made_pause_turn_stream anthropic/made_web_search_stream gemini/array_stream gemini/blocked gemini/blocked_stream
        gemini/filtered_stream openai_responses/sglang_incomplete_stream vllm/reasoning_chat_hello_stream_usage_continuous""",
    "lm15 loses calls of custom tools and patches, an old function_call, and what the start of a block holds": """
        anthropic/made_compaction_stream anthropic/made_whole_start_stream openai/made_custom_tool openai/made_function_call
        openai_responses/openai_patch openai_responses/openai_patch_stream openai_responses/openai_reasoning_calls
        openai_responses/openai_reasoning_calls_stream""",
    "lm15 loses a refusal, or takes it for text": """
        anthropic/made_refusal anthropic/made_refusal_stream openai/made_refusal_stream openai_responses/openai_refusal_stream""",
    "lm15 refuses several answers in one body, and joins them in a stream": """
        gemini/candidates_stream sglang/n3_tools sglang/n3_tools_stream sglang/reasoning_n2 sglang/reasoning_n2_stream
        vllm/forced_n2_stream vllm/n2 vllm/n2_stream vllm/reasoning_n3_tools vllm/reasoning_n3_tools_stream""",
    "lm15 makes one call of two, and no arguments of their parts": """
        fireworks/made_no_index_stream gemini/tools_stream gemini/vertex_arguments_stream""",
    "lm15 does not see an error in an answer with HTTP 200": """
        deepseek/made_no_resources_stream openrouter/made_error_in_choice zai/made_network_error""",
    "lm15 has a coarser word for the error": """
        anthropic/vllm_err_model openai_responses/ollama_err_overflow openai_responses/ollama_err_overflow_stream
        openai_responses/openai_failed_stream openai_responses/sglang_err_overflow openai_responses/sglang_err_overflow_stream
        moonshot/made_too_long openrouter/made_error_in_stream_stream openrouter/made_error_with_200 vllm/err_bad_schema_stream""",
    "debatable: a call that the model wrote wrongly is not a wrong request to us": """
        gemini/malformed_call gemini/malformed_call_stream groq/made_failed_generation""",
    "debatable: an overloaded server limits its rate (HTTP 529), which lm15 calls a server's error": """
        anthropic/made_err_overloaded anthropic/made_overloaded_stream""",
    "debatable: an error event without a known code is the provider's, and lm15 calls its stream broken": """
        groq/made_error_in_x_groq_stream""",
}
"""The captures that lm15 1.5 reads in another way, by the reason. Nowhere else do the two disagree."""


def line_of(provider: str, data: bytes, *, status: int = 200, stream: bool = False) -> str:
    about: dict[str, Any] = {"id": "1", "provider": provider, "canonical_request": REQUEST, "status": status}
    if status >= 400:
        about |= {"op": "normalize_error", "body_text": data.decode(errors="replace")}
    else:
        about |= {
            "op": "replay_stream" if stream else "parse_response",
            "body_b64": b64encode(data).decode(),
        }
    return json.dumps(about)


def captures() -> Iterator[tuple[str, str, str]]:
    """The name of each capture of an API that both read, lm15's name of the provider, and the line."""
    for theirs, ours in PROVIDERS.items():
        folder = ROOT / "tests/captures" / ours
        for text in (folder / "MANIFEST.jsonl").read_text("utf-8").splitlines():
            entry = json.loads(text)
            path = entry["path"].partition("?")[0]
            if path.endswith(ENDS) and not (ours == "gemini" and "/openai/" in path):
                data = (folder / entry["file"]).read_bytes()
                line = line_of(theirs, data, status=entry["status"], stream=entry["stream"])
                yield f"{ours}/{entry['file'].partition('.')[0]}", theirs, line


def outcome(answer: dict[str, Any]) -> dict[str, Any]:
    """What the reply says of the answer or the error. White space between parts is each library's own."""
    if not answer["ok"]:
        return {"error": answer["error"].get("code", answer["error"]["type"])}
    if "code" in answer["result"]:
        return {"error": answer["result"]["code"]}
    canonical = answer["result"]["canonical_response"]
    parts = canonical["message"]["parts"]
    texts = {
        kind: "".join("".join(part["text"] for part in parts if part["type"] == kind).split())
        for kind in ("text", "thinking", "refusal")
    }
    calls = [(part["name"], part["input"]) for part in parts if part["type"] == "tool_call"]
    return {**texts, "calls": calls, "finish": canonical["finish_reason"]}


def lm15_reply(line: str) -> dict[str, Any]:
    vet = pytest.importorskip("lm15.vet", reason="lm15 is not installed: pip install lm15")
    answer: dict[str, Any] = vet.handle_line(line)
    return answer


def test_both_read_the_captures_alike_but_for_what_is_listed() -> None:
    found, total = set(), 0
    for name, _, line in captures():
        total += 1
        if outcome(reply(line)) != outcome(lm15_reply(line)):
            found.add(name)
    listed = [name for names in DISAGREEMENTS.values() for name in names.split()]
    assert len(listed) == len(set(listed))
    assert total > 280
    assert sorted(found - set(listed)) == []
    assert sorted(set(listed) - found) == []


def test_the_shim_answers_each_line_of_its_input_in_order() -> None:
    lines = ["no json", json.dumps({"id": 2, "op": "capabilities"}), json.dumps({"id": 3, "op": "sign"})]
    lines += [line for _, _, line in [*captures()][:9]]
    ran = subprocess.run(
        [sys.executable, str(ROOT / "tests/neighbours/vet.py")],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=True,
    )
    replies = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [one["id"] for one in replies[:3]] == [None, 2, 3]
    assert [one["ok"] for one in replies[:3]] == [False, True, False]
    assert replies[1]["result"]["ops"] == [
        "capabilities",
        "normalize_error",
        "parse_response",
        "replay_stream",
    ]
    assert replies[3:] == [reply(line) for line in lines[3:]]


CORPUS = Path(os.environ.get("CROSSWALK_LM15", "nowhere"))
OTHER_KINDS = {
    "anthropic_overloaded": "rate_limit",  # debatable: see above
    "gemini.context_length": "invalid_request",  # a made-up sentence; the vendor's own is recognized
}
"""The errors of lm15's corpus that mean something else to us, with our code."""
NO_ANSWERS = "gemini.cached_content/"
"""Created caches, of which lm15 makes an empty answer."""


@pytest.mark.skipif(not CORPUS.is_dir(), reason="CROSSWALK_LM15 names no clone of lm15's corpus")
def test_the_errors_of_lm15s_corpus_have_the_kinds_that_it_expects() -> None:
    others = {}
    files = sorted(CORPUS.glob("errors/cases/*.json"))
    assert files
    for file in files:
        for case in json.loads(file.read_text("utf-8"))["cases"]:
            if case["provider"] not in PROVIDERS:
                continue
            body = case.get("body_text") or json.dumps(case["body"])
            said = outcome(reply(line_of(case["provider"], body.encode(), status=case["status"])))
            if said != {"error": case["expected"]["code"]}:
                others[case["id"]] = said["error"]
    assert others == OTHER_KINDS


@pytest.mark.skipif(not CORPUS.is_dir(), reason="CROSSWALK_LM15 names no clone of lm15's corpus")
def test_both_read_the_bodies_of_lm15s_corpus_alike() -> None:
    found, total = {}, 0
    for file in sorted((*CORPUS.glob("**/bodies/*/*.txt"), *CORPUS.glob("**/bodies/*/*.json"))):
        provider, data = file.parent.name.partition(".")[0], file.read_bytes()
        stream = data.lstrip().startswith((b"event:", b"data:"))
        if provider not in PROVIDERS or b'"error"' in data[:80]:
            continue
        total += 1
        line = line_of(provider, data, stream=stream)
        ours, theirs = outcome(reply(line)), outcome(lm15_reply(line))
        if ours != theirs:
            found[f"{file.parent.name}/{file.name}"] = (ours, theirs)
    assert total
    assert {name: said for name, said in found.items() if not name.startswith(NO_ANSWERS)} == {}
