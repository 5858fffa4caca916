"""Batch files before the vendors' own SDKs: their types take the lines, and the functions of the page call them."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import create_autospec

import orjson
import pytest

from crosswalk import ChatMessage, ToolCall
from crosswalk.plugins import ImagePart, TextPart
from crosswalk.service import (
    ChatRequest,
    ResponseFormat,
    ToolChoice,
    ToolDefinition,
    build_batch_requests,
    read_batch_results,
)
from pages import blocks

from .test_batch_files import VENDORS, ask, file_of

PAGE = Path(__file__).parents[3] / "docs/batch-files.md"
TOOL = ToolDefinition("look", "Looks.", {"type": "object", "properties": {"city": {"type": "string"}}})

pytestmark = pytest.mark.sweep  # the SDKs take seconds to load


@pytest.fixture(scope="module")
def page() -> dict[str, Any]:
    names: dict[str, Any] = {}
    for block in blocks(PAGE, "python"):
        exec(block, names)  # the page's own names
    return names


@pytest.fixture
def path(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    file = tmp_path / "requests.jsonl"
    file.write_bytes(lines_of(request.param))
    return file


def lines_of(provider: str) -> bytes:
    call = ToolCall("call00001", "look", '{"city":"Oslo"}')
    talk = [
        ChatMessage("system", "Be brief."),
        ChatMessage("user", [TextPart("What is this?"), ImagePart(data=b"GIF89a", media_type="image/gif")]),
        ChatMessage("assistant", "", tool_calls=[call]),
        ChatMessage("tool", "Rain", tool_call_id="call00001"),
    ]
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    requests = {
        "r1": ask(provider, max_tokens=9),
        "r2": ask(provider, tools=[TOOL], tool_choice=ToolChoice.AUTO),
        "r3": ChatRequest(talk, model=VENDORS[provider].model, tools=[TOOL]),
        "r4": ask(provider, response_format=ResponseFormat(schema=schema, name="a")),
        "r5": ask(provider, reasoning_effort="low"),
    }
    lines = build_batch_requests(requests, provider, on_unsupported="drop")
    return b"".join(one.line for one in lines)


def bodies_of(provider: str) -> list[Any]:
    return [orjson.loads(line)[VENDORS[provider].body] for line in lines_of(provider).splitlines()]


# --------------------------------------------------------------------------------------- types


@pytest.mark.parametrize(
    ("provider", "types", "name"),
    [
        ("openai", "openai.types.chat.completion_create_params", "CompletionCreateParamsNonStreaming"),
        ("openai_responses", "openai.types.responses.response_create_params", "ResponseCreateParamsNonStreaming"),
        ("anthropic", "anthropic.types.message_create_params", "MessageCreateParamsNonStreaming"),
        ("mistral", "mistralai.client.models.chatcompletionrequest", "ChatCompletionRequest"),
    ],
)  # fmt: skip
def test_the_type_of_the_sdk_takes_each_body(provider: str, types: str, name: str) -> None:
    pydantic = pytest.importorskip("pydantic")
    pytest.importorskip(types.partition(".")[0], reason=f"{types} is not installed")
    kind = getattr(import_module(types), name)
    adapter = pydantic.TypeAdapter(kind)
    fields = {*getattr(kind, "model_fields", {}), *getattr(kind, "__annotations__", {})}
    for base in kind.__mro__ if isinstance(kind, type) else ():
        fields |= getattr(base, "__annotations__", {}).keys()
    for body in bodies_of(provider):
        known = adapter.validate_python(body | ({"model": "m"} if provider == "mistral" else {}))
        assert known
        assert body.keys() - fields == set()


def test_the_types_of_google_take_each_field_of_a_body() -> None:
    types = pytest.importorskip("google.genai.types")
    for body in bodies_of("gemini"):
        for content in body["contents"]:
            types.Content.model_validate(content)
        types.GenerationConfig.model_validate(body.get("generationConfig", {}))
        for tool in body.get("tools", ()):
            types.Tool.model_validate(tool)
        types.Content.model_validate(body.get("systemInstruction", {}))
        types.ToolConfig.model_validate(body.get("toolConfig", {}))
        known = {"contents", "generationConfig", "tools", "systemInstruction", "toolConfig"}
        assert body.keys() - known == set()


def test_the_model_of_the_service_takes_each_body_of_converse() -> None:
    session = pytest.importorskip("botocore.session").get_session()
    validate = pytest.importorskip("botocore.validate")
    shape = session.get_service_model("bedrock-runtime").operation_model("Converse").input_shape
    for body in bodies_of("bedrock"):
        report = validate.ParamValidator().validate({"modelId": "m", **body}, shape)
        assert not report.has_errors(), report.generate_report()


def test_the_objects_of_anthropics_sdk_are_read() -> None:
    types = pytest.importorskip("anthropic.types.messages")
    vendor = VENDORS["anthropic"]
    lines = [vendor.answer, *(line for line, _ in vendor.failures)]
    objects = [types.MessageBatchIndividualResponse.model_validate(line) for line in lines]
    for result, expected in zip(
        read_batch_results(objects, "anthropic"),
        read_batch_results(file_of(*lines), "anthropic"),
        strict=True,
    ):
        assert (result.id, type(result.error)) == (expected.id, type(expected.error))
        assert result.response is not None
        assert expected.response is not None
        assert (result.response.text, result.response.usage) == (
            expected.response.text,
            expected.response.usage,
        )


# --------------------------------------------------------------------- the functions of the page


@pytest.mark.parametrize("path", ["openai"], indirect=True)
def test_openais_sdk_takes_the_calls_of_the_page(page: dict[str, Any], path: Path) -> None:
    openai = pytest.importorskip("openai")
    client = create_autospec(openai.OpenAI(api_key="none"), instance=True)
    client.files.create.return_value.id = "f1"
    client.batches.create.return_value.id = "b1"
    assert page["submit_to_openai"](client, path) == "b1"
    assert client.batches.create.call_args.kwargs["input_file_id"] == "f1"
    client.batches.retrieve.return_value.output_file_id = "f2"
    client.batches.retrieve.return_value.error_file_id = None
    client.files.content.return_value.content = file_of(VENDORS["openai"].answer)
    (result,) = read_batch_results(page["results_of_openai"](client, "b1"), "openai")
    assert (result.id, result.error) == ("r2", None)


@pytest.mark.parametrize("path", ["anthropic"], indirect=True)
def test_anthropics_sdk_takes_the_calls_of_the_page(page: dict[str, Any], path: Path) -> None:
    anthropic = pytest.importorskip("anthropic")
    client = create_autospec(anthropic.Anthropic(api_key="none"), instance=True)
    client.messages.batches.create.return_value.id = "b1"
    assert page["submit_to_anthropic"](client, path) == "b1"
    sent = client.messages.batches.create.call_args.kwargs["requests"]
    assert sent == [json.loads(line) for line in lines_of("anthropic").splitlines()]
    client.messages.batches.results.return_value = [VENDORS["anthropic"].answer]
    (result,) = read_batch_results(page["results_of_anthropic"](client, "b1"), "anthropic")
    assert (result.id, result.error) == ("r2", None)


@pytest.mark.parametrize("path", ["gemini"], indirect=True)
def test_googles_sdk_takes_the_calls_of_the_page(page: dict[str, Any], path: Path) -> None:
    genai = pytest.importorskip("google.genai")
    real = genai.Client(api_key="none")
    files, batches = (create_autospec(part, instance=True) for part in (real.files, real.batches))
    client = SimpleNamespace(files=files, batches=batches)
    client.files.upload.return_value.name = "files/1"
    client.batches.create.return_value.name = "batches/1"
    assert page["submit_to_gemini"](client, path, "m") == "batches/1"
    config = client.files.upload.call_args.kwargs["config"]
    assert genai.types.UploadFileConfig.model_validate(config).mime_type == "jsonl"
    client.files.download.return_value = file_of(VENDORS["gemini"].answer)
    (result,) = read_batch_results(page["results_of_gemini"](client, "batches/1"), "gemini")
    assert (result.id, result.error) == ("r2", None)


@pytest.mark.parametrize("path", ["mistral"], indirect=True)
def test_mistrals_sdk_takes_the_calls_of_the_page(page: dict[str, Any], path: Path) -> None:
    client_of = pytest.importorskip("mistralai.client", reason="mistralai is not installed")
    real = client_of.Mistral(api_key="none")
    files, jobs = (create_autospec(part, instance=True) for part in (real.files, real.batch.jobs))
    client = SimpleNamespace(files=files, batch=SimpleNamespace(jobs=jobs))
    client.files.upload.return_value.id = "f1"
    client.batch.jobs.create.return_value.id = "b1"
    assert page["submit_to_mistral"](client, path, "m") == "b1"
    client.batch.jobs.get.return_value.output_file = "f2"
    client.batch.jobs.get.return_value.error_file = None
    client.files.download.return_value.read.return_value = file_of(VENDORS["mistral"].answer)
    (result,) = read_batch_results(page["results_of_mistral"](client, "b1"), "mistral")
    assert (result.id, result.error) == ("r2", None)


def test_amazons_sdk_takes_the_call_of_the_page(page: dict[str, Any]) -> None:
    session = pytest.importorskip("botocore.session").get_session()
    stub = pytest.importorskip("botocore.stub")
    client = session.create_client(
        "bedrock", region_name="us-east-1", aws_access_key_id="none", aws_secret_access_key="none"
    )
    arn = "arn:aws:bedrock:us-east-1:123456789012:model-invocation-job/abcdefghijkl"
    with stub.Stubber(client) as stubber:
        stubber.add_response("create_model_invocation_job", {"jobArn": arn})
        job = page["submit_to_bedrock"](
            client, "job", "arn:aws:iam::123456789012:role/batch", "m", "s3://ours/in.jsonl", "s3://ours/out/"
        )
    assert job == arn
