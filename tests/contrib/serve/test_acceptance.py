"""The public acceptance tests of ``llm-comply`` and ``compatcanary``, against a gateway with another
provider's server.

Those of ``llm-comply`` check each answer against the official OpenAPI documents. ``pip install llm-comply`` brings tests and
documents, and ``npm install --prefix tests/clients`` brings ``compatcanary``, so nothing here needs a network.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from contrib_serve import config_of, live
from crosswalk.testing.replay import Answer, ReceivedRequest, ReplayServer

CLIENTS = Path(__file__).parents[2] / "clients"
CANARY = shutil.which("compatcanary", path=f"{CLIENTS}/node_modules/.bin")
MODELS = {"openai": "gpt-5-mini", "anthropic": "claude-sonnet-4-6"}
"""Names for which no test is left out: reasoning is asked for, too."""
TESTS = {
    "openai_chat": ("OPENAI_CHAT_TESTS", "openai_chat.json", MODELS["openai"], 9),
    "open_responses": ("OPEN_RESPONSES_TESTS", "openresponses.json", MODELS["openai"], 13),
    "anthropic": ("ANTHROPIC_TESTS", "anthropic.json", MODELS["anthropic"], 9),
}
"""The lists of tests by their modules, each with its OpenAPI document, its model and how many tests it has."""

DONE = {"done": True, "done_reason": "stop", "prompt_eval_count": 9, "eval_count": 4}
CALL = {"function": {"name": "get_weather", "arguments": {"location": "San Francisco"}}}
ECHO = {"function": {"name": "compatcanary_echo", "arguments": {"value": "CANARY_OK"}}}


def line(message: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A line of one of Ollama's streams, or a whole answer."""
    about = {"model": "tiny", "created_at": "2026-01-02T03:04:05.678Z"}
    return {**about, "message": {"role": "assistant", **message}, **more}


def sets(name: str) -> Callable[[ReceivedRequest], bool]:
    """Whether a request has something under *name*."""
    return lambda request: bool(request.json().get(name))


@pytest.fixture
def target(upstream: ReplayServer) -> Iterator[str]:
    """The address of a gateway before an Ollama, so that each answer is converted. It thinks, and calls a tool if it has one."""
    lines = [line({"content": "", "thinking": part}, done=False) for part in ("Let me ", "count.")]
    lines += [line({"content": part}, done=False) for part in ("1, 2, ", "3, 4, 5")]
    chunks = tuple(json.dumps(one).encode() + b"\n" for one in [*lines, line({"content": ""}, **DONE)])
    stream = Answer(chunks, headers={"Content-Type": "application/x-ndjson"}, stream=True)
    called = line({"content": "", "tool_calls": [CALL]}, **DONE)
    thought = line({"content": "Hello there, friend.", "thinking": "Let me see."}, **DONE)
    echoed = line({"content": "", "tool_calls": [ECHO]}, **DONE)
    upstream.add(Answer.of_json(echoed), when=lambda one: b"compatcanary_echo" in one.body, times=None)
    upstream.add(Answer.of_json(called), when=sets("tools"), times=None)
    upstream.add(
        Answer.of_json(line({"content": '{"status": "ok"}'}, **DONE)), when=sets("format"), times=None
    )
    upstream.add(stream, when=sets("stream"), times=None)
    upstream.add(Answer.of_json(thought), times=None)
    models = (f"{name}: {{provider: ollama, base_url: '{upstream.url}'}}" for name in MODELS.values())
    more = "on_unsupported: drop\nreasoning_events: open-responses"
    with live(config_of(upstream, more, "\n  ".join(models))) as here:
        yield f"{here.url}/v1"


@pytest.mark.filterwarnings("ignore:jsonschema.RefResolver:DeprecationWarning")
@pytest.mark.parametrize("module", TESTS)
def test_every_test_passes(target: str, module: str) -> None:
    comply = pytest.importorskip("llm_comply", reason="llm-comply is not installed")
    from llm_comply.config import ComplianceConfig
    from llm_comply.runner import TestRunner
    from llm_comply.schema import SpecLoader

    name, document, model, count = TESTS[module]
    cases = getattr(import_module(f"llm_comply.tests.{module}"), name)
    documents = SpecLoader(str(Path(comply.__file__).parent / "specs" / document))
    config = ComplianceConfig(base_url=target, api_key="none", model=model)
    results = TestRunner(config, cases, documents).run_all().results
    failed = {one.id: one.errors for one in results if one.status.value != "passed"}
    assert (failed, len(results)) == ({}, count)


@pytest.mark.skipif(
    CANARY is None, reason="compatcanary is not installed: npm install --prefix tests/clients"
)
@pytest.mark.parametrize("profile", ["chat", "modern"])
def test_compatcanary_passes(target: str, profile: str) -> None:
    assert CANARY is not None
    command = [CANARY, "scan", "--base-url", target, "--model", MODELS["openai"], "--profile", profile]
    command += ["--timeout", "600", "--fail-on", "any", "--api-key", "none"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
