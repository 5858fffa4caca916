"""The modules that a fresh process loads for its first answer: the needed ones, and nothing else (promise P7)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pages import ROOT

NEVER = (
    "asyncio", "bz2", "crosswalk.agent", "crosswalk.service", "crosswalk.stream", "email", "hashlib", "html", "http", "httpcore2",
    "httpx2", "importlib.metadata", "logging", "lzma", "rich", "shutil", "ssl", "traceback", "urllib.request", "yaml", "zipfile",
)  # fmt: skip
BODY = (
    b'{"model":"m","created_at":"2026-11-20T09:48:24.9Z","message":{"role":"assistant","content":"Hi."},'
    b'"done":true,"done_reason":"stop","prompt_eval_count":3,"eval_count":2}'
)
CHAT = (
    b'{"id":"chatcmpl-1","object":"chat.completion","created":1767225600,"model":"m","choices":[{"index":0,"message":'
    b'{"role":"assistant","reasoning_content":null,"content":"Hi.","tool_calls":[]},"logprobs":null,"finish_reason":"stop",'
    b'"stop_reason":null}],"usage":{"prompt_tokens":3,"total_tokens":5,"completion_tokens":2}}'
)
CAPTURE = ROOT / "tests/captures/vllm/reasoning_chat_hello_stream_usage_continuous.response.sse"
WAYS = {
    "a named provider": (
        f"from crosswalk import normalize; assert normalize({BODY!r}, 'ollama').text == 'Hi.'",
        ("argparse", "cattrs", "pathlib"),
    ),
    "detection": (f"from crosswalk import normalize; assert normalize({BODY!r}).text == 'Hi.'", ("cattrs",)),
    "a stream": (
        f"from crosswalk import normalize_stream\nfor _ in normalize_stream([{BODY!r}], 'ollama'): pass",
        ("cattrs",),
    ),
    "a command on one body": (
        "import io, os; from crosswalk.cli import main\nsys.stdout = io.TextIOWrapper(io.BytesIO())\n"
        "body = os.environ['BODY']\nassert main(['normalize', body]) == 0\nsys.stdout = sys.__stdout__",
        (
            "crosswalk.cli.stored",
            "crosswalk.testing.case",
            "crosswalk.records.facts",
            "crosswalk.wire.messages",
            "crosswalk.wire.responses",
            "random",
            "socket",
            "tempfile",
        ),
    ),
    "the command line on a stream": (
        "import io; from crosswalk.cli import main\nsys.stdout = io.TextIOWrapper(io.BytesIO())\n"
        f"assert main(['normalize', '--provider', 'vllm', {str(CAPTURE)!r}]) == 0\nsys.stdout = sys.__stdout__",
        ("crosswalk.cli.stored", "crosswalk.testing.case", "crosswalk.testing.checks", "random"),
    ),
}


@pytest.mark.sweep
@pytest.mark.parametrize("way", WAYS)
def test_the_first_answer_loads_what_it_needs(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "answer.json"
    file.write_bytes(BODY)
    monkeypatch.setenv("BODY", str(file))
    statements, more = WAYS[way]
    loaded = modules_after(statements)
    assert sorted(loaded & {*NEVER, *more}) == []
    others = {name for name in loaded if name.startswith("crosswalk_")}
    named = "crosswalk_vllm" if "stream" in way and "command" in way else "crosswalk_ollama"
    assert {name.partition(".")[0] for name in others} == {named}


def test_detection_loads_those_that_may_know_the_body() -> None:
    loaded = modules_after(f"from crosswalk import normalize; assert normalize({CHAT!r}).text == 'Hi.'")
    assert sorted(loaded & {*NEVER, "cattrs"}) == []
    plugins = {name.partition(".")[0] for name in loaded if name.startswith("crosswalk_")}
    assert plugins == {
        "crosswalk_cloudflare",
        "crosswalk_dashscope",
        "crosswalk_gemini",
        "crosswalk_llamacpp",
        "crosswalk_openai",
        "crosswalk_tgi",
        "crosswalk_vllm",
    }


def modules_after(statements: str) -> set[str]:
    # What is there before is another's, as coverage's.
    program = (
        f"import sys; before = {{*sys.modules}}\n{statements}\nprint(*sys.modules.keys() - before, sep='\\n')"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", program], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "read",
    [
        "parse_response({'id': 'r', 'output': [{'type': 'message', 'content': []}], 'tools': [{'type': 'function', 'name': 'f'}]})",
        "parse_event({'type': 'response.output_text.delta', 'item_id': 'm', 'output_index': 0, 'content_index': 0, 'delta': 'Hi'})",
    ],
    ids=["response", "event"],
)
def test_an_answer_of_the_responses_api_loads_few_of_its_types(read: str) -> None:
    loaded = modules_after(f"from crosswalk.responses import parse_event, parse_response; {read}")
    of_others = {"items", "server_calls", "tools", "events.calls", "pipeline"}
    assert not loaded & {f"crosswalk.responses.{name}" for name in of_others}
