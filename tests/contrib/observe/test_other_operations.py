"""Embeddings, images, rerank and their like: tokens, status and errors, without content. Stored responses: whole."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from crosswalk_observe import CaptureFolder, JSONLinesLog, OpenTelemetrySink, ParquetLog, Watcher

from .conftest import Seen, capture

OPENAI = "https://api.openai.com/v1"
USED = {"usage": {"prompt_tokens": 8, "total_tokens": 8}}
ASKED = {"model": "m", "input": "a private sentence", "dimensions": 64}


def ask(
    watcher: Watcher, url: str, answer: Any, *, status: int = 200, asked: Any = ASKED, method: str = "POST"
) -> None:
    exchange = watcher.begin(method, url, {}, json.dumps(asked).encode())
    assert exchange is not None
    exchange.answered(status, {"content-type": "application/json"})
    exchange.chunk(answer if isinstance(answer, bytes) else json.dumps(answer).encode())
    exchange.ended()


@pytest.mark.parametrize(
    ("url", "answer", "operation", "provider", "tokens"),
    [
        (f"{OPENAI}/embeddings", USED, "embeddings", "openai", {"input": 8}),
        ("https://x.openai.azure.com/openai/deployments/d/embeddings", USED, "embeddings", "openai", {"input": 8}),
        ("https://gpu-1:8000/v1/embeddings", USED, "embeddings", "openai", {"input": 8}),
        ("http://localhost:11434/api/embed", {"prompt_eval_count": 3}, "embeddings", "ollama", {"input": 3}),
        (
            "https://generativelanguage.googleapis.com/v1beta/models/g:embedContent",
            {"usageMetadata": {"promptTokenCount": 4}},
            "embeddings",
            "gemini",
            {"input": 4},
        ),
        (
            "https://api.cohere.com/v2/rerank",
            {"meta": {"billed_units": {"input_tokens": 5, "output_tokens": 1}}},
            "rerank",
            "cohere",
            {"input": 5, "output": 1},
        ),
        (
            f"{OPENAI}/images/generations",
            {"usage": {"input_tokens": 2, "output_tokens": 900}},
            "image_generation",
            "openai",
            {"input": 2, "output": 900},
        ),
        (
            f"{OPENAI}/images/edits",
            {"usage": {
                "input_tokens": 50, "output_tokens": 1000,
                "input_tokens_details": {"text_tokens": 10, "image_tokens": 40},
                "output_tokens_details": {"image_tokens": 990, "text_tokens": None}, "other_details": {"text_tokens": 1},
            }},
            "image_generation",
            "openai",
            {"input": 50, "output": 1000, "text.input": 10, "image.input": 40, "image.output": 990},
        ),
        (f"{OPENAI}/moderations", {"results": []}, "moderation", "openai", {}),
        (f"{OPENAI}/audio/transcriptions", b"plain text", "transcription", "openai", {}),
        (f"{OPENAI}/audio/translations", {"usage": {"input_tokens": 7}}, "translation", "openai", {"input": 7}),
        (
            f"{OPENAI}/audio/transcriptions",
            {"usage": {"input_tokens": 14, "input_token_details": {"audio_tokens": 14}, "output_token_details": 3}},
            "transcription",
            "openai",
            {"input": 14, "audio.input": 14},
        ),
        (f"{OPENAI}/audio/speech", b"ID3 sound", "speech", "openai", {}),
    ],
)  # fmt: skip
def test_what_is_no_chat_has_tokens_and_status_and_no_content(
    url: str, answer: Any, operation: str, provider: str, tokens: dict[str, int], seen: Seen
) -> None:
    with Watcher(seen, in_background=False) as watcher:
        ask(watcher, url, answer)
    record = seen.one
    assert (record.operation, record.provider, record.status) == (operation, provider, 200)
    assert (record.tokens, record.gives_answer, record.is_complete) == (tokens, False, True)
    assert (record.body, record.request.body, record.response, record.error) == (b"", None, None, None)
    assert record.request.model == "m"


def test_the_path_of_gemini_names_the_model(seen: Seen) -> None:
    url = "https://generativelanguage.googleapis.com/v1beta/models/g:batchEmbedContents"
    with Watcher(seen, in_background=False) as watcher:
        ask(watcher, url, {}, asked={"requests": []})
    assert (seen.one.operation, seen.one.request.model) == ("embeddings", "g")


def test_the_server_that_the_user_names_is_that_providers(seen: Seen) -> None:
    with Watcher(seen, providers={"llm.example": "vllm"}, in_background=False) as watcher:
        ask(watcher, "https://llm.example/v1/embeddings", USED)
    assert (seen.one.provider, seen.one.tokens) == ("vllm", {"input": 8})


def test_a_request_elsewhere_that_names_no_model_is_passed_over() -> None:
    with Watcher(in_background=False) as watcher:
        assert watcher.begin("POST", "https://any.example/embeddings", {}, b'{"input": "x"}') is None
        assert watcher.passed_over == 1


def test_an_error_is_read(seen: Seen) -> None:
    refused = {"error": {"message": "too many", "type": "insufficient_quota", "code": "insufficient_quota"}}
    with Watcher(seen, in_background=False) as watcher:
        ask(watcher, f"{OPENAI}/embeddings", refused, status=429)
    assert seen.one.response is not None
    assert seen.one.response.error_info is not None
    assert seen.one.response.error_info.code == "insufficient_quota"


def test_a_connection_that_breaks_is_an_error_without_content(seen: Seen) -> None:
    with Watcher(seen, in_background=False) as watcher:
        exchange = watcher.begin("POST", f"{OPENAI}/embeddings", {}, json.dumps(ASKED).encode())
        assert exchange is not None
        exchange.answered(200, {})
        exchange.chunk(b'{"data": [')
        exchange.failed(ConnectionResetError("reset"))
    assert seen.one.body == b""
    assert seen.one.response is not None
    assert seen.one.response.error_info is not None
    assert not seen.one.is_complete


def test_an_answer_longer_than_what_is_kept_has_no_tokens(seen: Seen) -> None:
    with Watcher(seen, keep_bytes=4, in_background=False) as watcher:
        ask(watcher, f"{OPENAI}/embeddings", USED)
    assert (seen.one.is_cut, seen.one.body, seen.one.tokens, seen.one.error) == (True, b"", {}, None)


def test_a_span_has_the_operation_and_the_tokens_and_never_content() -> None:
    spans, tracers = InMemorySpanExporter(), TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(spans))
    sink = OpenTelemetrySink(tracers, content=True)
    with Watcher(sink, in_background=False) as watcher:
        ask(watcher, f"{OPENAI}/embeddings", USED)
        ask(watcher, f"{OPENAI}/embeddings", {"error": {"message": "no", "type": "x"}}, status=500)
    right, wrong = spans.get_finished_spans()
    assert right.name == wrong.name == "embeddings m"
    assert right.attributes is not None
    assert right.attributes["gen_ai.operation.name"] == "embeddings"
    assert right.attributes["gen_ai.usage.input_tokens"] == 8
    assert "error.type" not in right.attributes
    assert not [name for name in right.attributes if "messages" in name]
    assert (right.status.status_code, wrong.status.status_code) == (StatusCode.UNSET, StatusCode.ERROR)


def test_logs_hold_chat_answers_alone(tmp_path: Path) -> None:
    log, parts, captures = tmp_path / "log.jsonl", tmp_path / "parts", tmp_path / "captures"
    sinks = (JSONLinesLog(log), ParquetLog(parts), CaptureFolder(captures))
    with Watcher(*sinks, in_background=False) as watcher:
        ask(watcher, f"{OPENAI}/embeddings", USED)
    assert not log.exists()
    assert not list(tmp_path.rglob("*.parquet"))
    assert not captures.exists()


def test_a_compressed_answer_is_counted(seen: Seen) -> None:
    with Watcher(seen, in_background=False) as watcher:
        exchange = watcher.begin("POST", f"{OPENAI}/embeddings", {}, json.dumps(ASKED).encode())
        assert exchange is not None
        exchange.answered(200, {"content-encoding": "gzip"})
        exchange.chunk(gzip.compress(json.dumps(USED).encode()))
        exchange.ended()
    assert seen.one.tokens == {"input": 8}


def test_azure_names_the_model_in_the_path(seen: Seen) -> None:
    address = "https://x.openai.azure.com/openai/deployments/d"
    with Watcher(seen, in_background=False) as watcher:
        for path in (
            "embeddings",
            "images/generations",
            "audio/transcriptions",
            "audio/translations",
            "audio/speech",
        ):
            exchange = watcher.begin("POST", f"{address}/{path}?api-version=1", {}, b"{}")
            assert exchange is not None
            assert exchange.model == "d"
            exchange.discard()


@pytest.mark.parametrize("host", ["api.openai.com", "gateway.example"])
def test_a_stored_response_that_is_fetched_is_read_whole(host: str, seen: Seen) -> None:
    stored = capture("openai_responses/llamacpp_think.response.json").body
    with Watcher(seen, in_background=False) as watcher:
        ask(watcher, f"https://{host}/v1/responses/resp_1?include=x", stored, method="GET")
        assert watcher.begin("GET", f"https://{host}/v1/responses/resp_1/input_items") is None
        assert watcher.begin("GET", f"https://{host}/v1/models") is None
    record = seen.one
    assert (record.operation, record.method, record.provider) == ("fetch_response", "GET", "openai_responses")
    assert record.response is not None
    assert record.response.metadata.provider_id == "openai_responses"
