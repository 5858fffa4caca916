"""Vendors' batch files: requests as lines, and results by id, in the form that each vendor documents."""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest
from hypothesis import given, strategies as st

from core.log_lines import CHAT, CONVERSE, GEMINI, MESSAGE
from crosswalk import Provenance, hookimpl
from crosswalk.errors import (
    ConfigurationError,
    CrosswalkError,
    InvalidRequestError,
    MappingError,
    ProviderError,
    ProviderTimeoutError,
    RateLimitError,
    ServerError,
    UnknownFinishReasonError,
    UnknownProviderError,
)
from crosswalk.plugin.registry import Registry, registry
from crosswalk.plugins import BatchFile, ProviderInfo, Recognition
from crosswalk.records import RecordError
from crosswalk.service import (
    BatchRequestError,
    BatchResult,
    ChatRequest,
    ToolDefinition,
    build_batch_requests,
    build_http_request,
    read_batch_results,
)

PAGE = Path(__file__).parents[3] / "docs/batch-files.md"
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1795168801,
    "status": "completed",
    "model": "gpt-x-2026",
    "output": [
        {
            "id": "m1",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "Hi", "annotations": []}],
        }
    ],
    "usage": {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5},
}


class Vendor(NamedTuple):
    """A vendor's batch file.

    Attributes:
        model: a model.
        line: the line of the request *r1*, without its body.
        body: the key of the body.
        leaves_out: the fields of the body that the job has instead.
        answer: the line of an answer to *r2*.
        failures: lines of failed requests, with their errors.
    """

    model: str
    line: dict[str, Any]
    body: str
    leaves_out: set[str]
    answer: dict[str, Any]
    failures: list[tuple[dict[str, Any], type[ProviderError]]]


def openai_line(body: Any, status: int = 200, id: str = "r2") -> dict[str, Any]:
    response = {"status_code": status, "request_id": "req_1", "body": body}
    return {"id": "batch_req_1", "custom_id": id, "response": response, "error": None}


def openai_error(code: str, message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": code, "param": None, "code": code}}


# https://platform.openai.com/docs/guides/batch
OPENAI_FAILURES: list[tuple[dict[str, Any], type[ProviderError]]] = [
    (openai_line(openai_error("invalid_request_error", "no"), 400), InvalidRequestError),
    (openai_line(openai_error("rate_limit_exceeded", "slow"), 429), RateLimitError),
    (
        {
            "id": "batch_req_1",
            "custom_id": "r2",
            "response": None,
            "error": {"code": "batch_expired", "message": "It could not be executed before the end."},
        },
        ProviderTimeoutError,
    ),
]


def openai_vendor(url: str, answer: Any, model: str) -> Vendor:
    line = {"custom_id": "r1", "method": "POST", "url": url}
    return Vendor(model, line, "body", set(), openai_line(answer), OPENAI_FAILURES)


def anthropic_line(**result: Any) -> dict[str, Any]:
    return {"custom_id": "r2", "result": result}


def bedrock_line(**result: Any) -> dict[str, Any]:
    return {"recordId": "r2", "modelInput": {"messages": []}, **result}


VENDORS = {
    "openai": openai_vendor("/v1/chat/completions", CHAT, "gpt-4.1"),
    "openai_responses": openai_vendor("/v1/responses", RESPONSE, "gpt-5.1"),
    "vllm": openai_vendor("/v1/chat/completions", CHAT, "any"),
    # https://docs.anthropic.com/en/docs/build-with-claude/batch-processing
    "anthropic": Vendor(
        "claude-haiku-4-5",
        {"custom_id": "r1"},
        "params",
        set(),
        anthropic_line(type="succeeded", message=MESSAGE),
        [
            (
                anthropic_line(
                    type="errored",
                    error={
                        "type": "error",
                        "error": {"type": "invalid_request_error", "message": "no"},
                        "request_id": "req_1",
                    },
                ),
                InvalidRequestError,
            ),
            (anthropic_line(type="expired"), ProviderTimeoutError),
            (anthropic_line(type="canceled"), ProviderError),
        ],
    ),
    # https://ai.google.dev/gemini-api/docs/batch-api
    "gemini": Vendor(
        "gemini-2.5-flash",
        {"key": "r1"},
        "request",
        set(),
        {"key": "r2", "response": {**GEMINI, "modelVersion": "gemini-2.5-flash"}},
        [
            ({"key": "r2", "error": {"code": 3, "message": "no"}}, InvalidRequestError),
            ({"key": "r2", "error": {"code": 8, "message": "full"}}, RateLimitError),
        ],
    ),
    # https://docs.mistral.ai/capabilities/batch
    "mistral": Vendor(
        "mistral-small-latest",
        {"custom_id": "r1"},
        "body",
        {"model"},
        openai_line(CHAT),
        [
            (
                openai_line(
                    {
                        "object": "error",
                        "message": {"detail": [{"type": "missing", "loc": ["body"], "msg": "no"}]},
                        "type": "invalid_request_error",
                    },
                    422,
                ),
                InvalidRequestError,
            ),
            (
                openai_line({"object": "error", "message": "slow", "type": "rate_limited"}, 429),
                RateLimitError,
            ),
        ],
    ),
    # https://docs.aws.amazon.com/bedrock/latest/userguide/batch-inference-results.html
    "bedrock": Vendor(
        "us.anthropic.claude-haiku-4-5-v1:0",
        {"recordId": "r1"},
        "modelInput",
        set(),
        bedrock_line(modelOutput=CONVERSE),
        [
            (bedrock_line(error={"errorCode": 400, "errorMessage": "bad request"}), InvalidRequestError),
            (bedrock_line(error={"errorCode": 500, "errorMessage": "try again"}), ServerError),
            (
                bedrock_line(error={"errorCode": "ThrottlingException", "errorMessage": "slow"}),
                RateLimitError,
            ),
        ],
    ),
}
EACH = pytest.mark.parametrize("provider", VENDORS)


def ask(provider: str, text: str = "Hello", **options: Any) -> ChatRequest:
    return ChatRequest(text, **{"model": VENDORS[provider].model, **options})


def file_of(*lines: Any) -> bytes:
    return b"".join(line if isinstance(line, bytes) else orjson.dumps(line) + b"\n" for line in lines)


def read(provider: str, *lines: Any, **options: Any) -> list[BatchResult]:
    return [*read_batch_results(file_of(*lines), provider, **options)]


def test_each_provider_with_batch_files_is_on_the_page() -> None:
    described = {name for name in registry.names() if registry.mapper(name).info.batch_file is not None}
    table = re.findall(r"^\| (`.+?) \| `(?:custom_id|key|recordId)`", PAGE.read_text(), re.MULTILINE)
    assert described == set(VENDORS) == set(re.findall(r"\w+", " ".join(table)))


# ----------------------------------------------------------------------------------- requests


@EACH
def test_a_line_holds_the_request_of_the_service_in_the_envelope_of_the_vendor(provider: str) -> None:
    """Also the options of the whole conversation, without what the job says instead."""
    vendor = VENDORS[provider]
    tool = ToolDefinition("look", "Looks.", {"type": "object", "properties": {}})
    request = ask(provider, max_tokens=50, tools=[tool])
    (one,) = build_batch_requests({"r1": request}, provider)
    body = build_http_request(request, provider).body
    expected = {name: value for name, value in body.items() if name not in vendor.leaves_out}
    assert orjson.loads(one.line) == {**vendor.line, vendor.body: expected}
    assert one.line.endswith(b"}\n")
    assert one.line.count(b"\n") == 1


@EACH
def test_results_in_another_order_come_back_by_id(provider: str) -> None:
    requests = {f"r{number}": ask(provider, f"Question {number}") for number in range(3)}
    lines = [orjson.loads(one.line) for one in build_batch_requests(requests, provider)]
    (id_key,) = set(lines[0]) & {"custom_id", "key", "recordId"}
    results = [{**VENDORS[provider].answer, id_key: line[id_key]} for line in reversed(lines)]
    answers = {result.id: result for result in read(provider, *results)}
    assert [*answers] == ["r2", "r1", "r0"]
    for result in answers.values():
        assert result.error is None
        assert result.response is not None
        assert (result.response.text, result.response.metadata.provider_id) == ("Hi", provider)
        assert (result.response.usage.prompt_tokens, result.response.usage.completion_tokens) == (3, 2)


@EACH
def test_no_stream_is_requested(provider: str) -> None:
    (one,) = build_batch_requests({"r1": ask(provider, stream=True)}, provider)
    assert b"stream" not in one.line
    assert "stream" not in one.built.path.lower()


@pytest.mark.parametrize("provider", ["openai", "openai_responses", "anthropic", "mistral", "vllm"])
def test_a_stream_among_the_providers_own_options_is_refused(provider: str) -> None:
    request = ask(provider, provider_options={provider: {"stream": True}})
    with pytest.raises(BatchRequestError, match=f"{provider}: request 'r1': a batch file asks for no stream"):
        next(build_batch_requests({"r1": request}, provider))


def test_a_request_fits_its_model_and_says_what_was_changed() -> None:
    request = ChatRequest("Hi", model="claude-opus-4-6", reasoning_effort="xhigh", seed=1)
    (one,) = build_batch_requests([("r1", request)], "anthropic", on_unsupported="drop")
    assert orjson.loads(one.line)["params"]["output_config"] == {"effort": "max"}
    changed = [one.field for one in one.built.adaptations if one.kind != "dropped"]
    assert changed == ["max_tokens", "reasoning_effort"]
    assert [left.field for left in one.built.dropped] == ["seed"]


def test_a_model_class_counts_and_a_wrong_one_is_an_error_of_the_settings() -> None:
    request = ChatRequest("Hi", model="ours", reasoning_effort="high")
    (one,) = build_batch_requests({"r1": request}, "anthropic", model_class="claude-opus-4-8")
    assert orjson.loads(one.line)["params"]["thinking"] == {"type": "adaptive"}
    with pytest.raises(ConfigurationError, match="no such"):
        next(build_batch_requests({"r1": request}, "anthropic", model_class="no such"))


@EACH
def test_a_request_without_a_model_gets_that_of_the_file(provider: str) -> None:
    model = VENDORS[provider].model
    (named,) = build_batch_requests({"r1": ask(provider)}, provider)
    (given,) = build_batch_requests({"r1": ChatRequest("Hello")}, provider, model=model)
    assert given.line == named.line


@pytest.mark.parametrize(
    ("provider", "requests", "message", "options"),
    [
        (
            "anthropic",
            [("r1", ask("anthropic")), ("r2", ask("anthropic", seed=1))],
            "anthropic: request 'r2': it cannot express seed",
            ("seed",),
        ),
        ("bedrock", [("r1", ask("bedrock")), ("r2", ChatRequest("Hi"))], "'r2': no model is named", ("model",)),
        ("openai", [("r2", ask("openai")), ("r2", ask("openai"))], "'r2': its id is there already", ("id",)),
        ("gemini", [("", ask("gemini"))], "request '': an id is a text", ("id",)),
        ("openai", [("a\ud800", ask("openai"))], "an id is a text that can be printed", ("id",)),
        ("mistral", [(7, ask("mistral"))], "request 7: an id is a text", ("id",)),
        ("anthropic", [("a b", ask("anthropic"))], "'a b': an id has at most 64 characters", ("id",)),
        ("anthropic", [("a" * 65, ask("anthropic"))], "an id has at most 64 characters", ("id",)),
        ("openai", [("r1", ask("openai")), ("r2", ask("openai", model="o3"))], "a file has one model", ("model",)),
        ("mistral", [("r1", ask("mistral")), ("r2", ask("mistral", model="m"))], "a job has one model", ("model",)),
    ],
)  # fmt: skip
def test_a_refused_request_names_its_id(
    provider: str, requests: Any, message: str, options: tuple[str, ...]
) -> None:
    """After the lines before it, and without more of a long id than 80 characters."""
    lines = build_batch_requests(iter(requests), provider)
    for id, _ in requests[:-1]:
        assert next(lines).id == id
    with pytest.raises(BatchRequestError) as caught:
        next(lines)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 300
    assert (caught.value.id, caught.value.provider) == (requests[-1][0], provider)
    assert caught.value.options == options


def test_only_a_vendor_that_takes_several_models_gets_them() -> None:
    requests = {"r1": ask("anthropic"), "r2": ask("anthropic", model="claude-opus-4-8")}
    models = [
        orjson.loads(one.line)["params"]["model"] for one in build_batch_requests(requests, "anthropic")
    ]
    assert models == ["claude-haiku-4-5", "claude-opus-4-8"]


def test_requests_are_taken_one_at_a_time() -> None:
    taken: list[str] = []

    def pairs() -> Iterator[tuple[str, ChatRequest]]:
        for number in range(1000):
            taken.append(str(number))
            yield str(number), ask("openai")

    lines = build_batch_requests(pairs(), "openai")
    assert [next(lines).id, next(lines).id] == taken == ["0", "1"]


@pytest.mark.parametrize("provider", ["ollama", "deepseek"])
def test_a_provider_without_batch_files_is_named_at_once(provider: str) -> None:
    """Before the first line, and not OpenAI's form because of a dialect like OpenAI's."""
    with pytest.raises(ConfigurationError, match=f"{provider}: its plugin describes no batch file"):
        build_batch_requests({}, provider)
    with pytest.raises(ConfigurationError, match=f"{provider}: its plugin describes no batch file"):
        read_batch_results(b"", provider)
    with pytest.raises(UnknownProviderError):
        read_batch_results(b"", "nobody")


class Stranger:
    """A plugin of somebody else, whose server has no known address."""

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        return ProviderInfo(
            title="Stranger", batch_file=BatchFile(id="key", body="ask", results="gemini_batch")
        )

    @hookimpl
    def recognizes(self, event: Any) -> Recognition:
        return Recognition.NO

    @hookimpl
    def map_delta(self, event: Any) -> list[Any]:
        event.clear()
        return []

    @hookimpl
    def build_request(self, request: ChatRequest) -> Any:
        from crosswalk.service import HTTPRequest

        return HTTPRequest("/ask", {"model": request.model, "prompt": request.messages[0].text})


def test_a_plugin_of_somebody_else_describes_its_own_lines() -> None:
    known = Registry()
    known.register(Stranger(), "stranger")
    (one,) = build_batch_requests({"r1": ChatRequest("Hi", model="m")}, "stranger", registry=known)
    assert orjson.loads(one.line) == {
        "key": "r1",
        "method": "POST",
        "url": "/ask",
        "ask": {"model": "m", "prompt": "Hi"},
    }
    (result,) = read_batch_results([{"key": "r1", "response": {"x": 1}}], "stranger", registry=known)
    assert result.id == "r1"


# ------------------------------------------------------------------------------------ results


@EACH
def test_a_failed_request_is_an_error_of_its_kind_with_its_id(provider: str) -> None:
    vendor = VENDORS[provider]
    results = read(provider, *(line for line, _ in vendor.failures), vendor.answer)
    for result, (_, kind) in zip(results, vendor.failures, strict=False):
        assert type(result.error) is kind
        assert result.id == "r2"
        assert result.response is not None
        assert result.response is result.error.response
        assert result.response.metadata.provider_id == provider
    assert results[-1].error is None


@EACH
def test_a_repeated_id_is_two_results_and_a_missing_one_is_none(provider: str) -> None:
    """Which of them counts is for the caller to say. The ids that have no answer are those that no result names."""
    answer = VENDORS[provider].answer
    id_key = next(iter({"custom_id", "key", "recordId"} & set(answer)))
    lines = [{**answer, id_key: id} for id in ("r1", "r3", "r1")]
    results = read(provider, *lines)
    assert [(one.id, one.error) for one in results] == [("r1", None), ("r3", None), ("r1", None)]
    assert {"r1", "r2", "r3"} - {one.id for one in results if one.error is None} == {"r2"}


@EACH
def test_a_last_line_that_is_cut_is_an_error_of_that_line(provider: str) -> None:
    whole = file_of(VENDORS[provider].answer)
    first, last = read(provider, whole, whole[: len(whole) // 2])
    assert (first.id, first.error) == ("r2", None)
    assert (last.number, last.response, type(last.error)) == (2, None, RecordError)


@pytest.mark.parametrize(
    ("provider", "other"),
    [("openai", "gemini"), ("gemini", "anthropic"), ("bedrock", "openai"), ("anthropic", "mistral")],
)
def test_results_of_another_vendor_are_errors_of_each_line(provider: str, other: str) -> None:
    results = read(provider, VENDORS[other].answer, VENDORS[other].answer)
    assert [(one.response, type(one.error)) for one in results] == [(None, RecordError)] * 2


@EACH
def test_results_are_read_one_at_a_time(provider: str) -> None:
    taken: list[int] = []

    def lines() -> Iterator[bytes]:
        for number in range(1000):
            taken.append(number)
            yield file_of(VENDORS[provider].answer)

    results = read_batch_results(lines(), provider)
    assert [next(results).number, next(results).number] == [1, 2]
    assert taken == [0, 1]


@EACH
def test_lines_that_cannot_be_read_do_not_stop_the_others(provider: str) -> None:
    """Neither what is no line, nor one without an answer, nor one whose answer is broken."""
    answer = VENDORS[provider].answer
    id_key = next(iter({"custom_id", "key", "recordId"} & set(answer)))
    results = read(
        provider,
        b'{"cut": \n',
        answer,
        [1],
        b"\n",
        {id_key: "empty"},
        {"other": 1},
        file_of(answer).replace(b'"Hi"', b"77"),
        {**answer, id_key: "nobody asked"},
    )
    kinds = [
        (result.id, result.number, None if result.error is None else type(result.error)) for result in results
    ]
    assert [kind for kind in kinds if kind[1] != 7] == [
        (None, 1, RecordError),
        ("r2", 2, None),
        (None, 3, RecordError),
        ("empty", 5, RecordError),
        (None, 6, RecordError),
        ("nobody asked", 8, None),
    ]
    (broken,) = (result for result in results if result.number == 7)
    assert broken.id == "r2"
    assert isinstance(broken.error, MappingError)
    assert (broken.error.provider, str(broken.error.place).partition(",")[0]) == (provider, "line 7")
    for result in results:
        assert result.error is None or str(result.error).startswith(f"{provider}, line {result.number}")


def test_an_answer_that_cannot_be_read_keeps_its_part() -> None:
    body = orjson.loads(orjson.dumps(CHAT).replace(b'"stop"', b'"sideways"'))
    (result,) = read("openai", openai_line(body))
    assert isinstance(result.error, UnknownFinishReasonError)
    assert result.response is result.error.partial
    assert result.response is not None
    assert result.response.text == "Hi"
    (kept,) = read("openai", openai_line(body), unknown="keep")
    assert kept.error is None
    assert kept.response is not None
    assert kept.response.raw_finish_reason == "sideways"


@pytest.mark.parametrize("body", [{"embedding": [1]}, "<html>", [{}]])
def test_an_answer_of_which_nothing_can_be_read_is_an_error_response(body: Any) -> None:
    (result,) = read("openai", openai_line(body), model="m")
    assert isinstance(result.error, MappingError)
    assert result.response is not None
    assert (result.id, result.response.text, result.response.model) == ("r2", "", "m")


@pytest.mark.parametrize("status", [0, "many", 99])
def test_a_status_that_is_none_is_an_error_with_the_id(status: Any) -> None:
    (result,) = read("openai", openai_line(CHAT, status))
    assert (result.id, type(result.error)) == ("r2", RecordError)
    assert "response.status_code: expected an HTTP status" in str(result.error)


@given(st.lists(st.binary() | st.sampled_from([file_of(one.answer) for one in VENDORS.values()])))
def test_any_bytes_are_results_or_typed_errors(parts: list[bytes]) -> None:
    for result in read_batch_results(b"\n".join(parts), "openai"):
        assert (result.error is None) <= (result.response is not None)
        assert result.error is None or isinstance(result.error, CrosswalkError)


FORMS: dict[str, Any] = {
    "the content": lambda content, _: content,
    "text": lambda content, _: content.decode(),
    "with a byte order mark": lambda content, _: b"\xef\xbb\xbf" + content,
    "an open file": lambda content, _: BytesIO(content),
    "an open text file": lambda content, path: path.write_bytes(content) and path.open(encoding="utf-8"),
    "lines of bytes": lambda content, _: content.splitlines(),
    "lines of text": lambda content, _: content.decode().splitlines(keepends=True),
    "decoded JSON": lambda content, _: (
        [orjson.loads(line) for line in content.splitlines()[:1]]
        + ["", orjson.loads(content.splitlines()[2])]
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_file_may_come_in_many_forms(form: str, tmp_path: Path) -> None:
    content = file_of(openai_line(CHAT, id="r1"), b"\n", openai_line(CHAT, id="r2"))
    lines = FORMS[form](content, tmp_path / "results.jsonl")
    results = [*read_batch_results(lines, "openai")]
    assert [(result.id, result.number, result.error) for result in results] == [
        ("r1", 1, None),
        ("r2", 3, None),
    ]
    if form == "an open text file":
        lines.close()


def test_an_object_without_a_json_form_is_an_error_of_its_line_and_a_number_is_none() -> None:
    strange: dict[str, Any] = {**openai_line(CHAT), "x": object()}
    first, second = read_batch_results([strange, openai_line(CHAT)], "openai")
    assert (first.id, first.number, type(first.error)) == (None, 1, RecordError)
    assert (second.id, second.error) == ("r2", None)
    lines: Any = [7]
    with pytest.raises(TypeError, match="not int"):
        next(read_batch_results(lines, "openai"))


def test_an_answer_without_a_model_gets_that_of_the_job() -> None:
    line = VENDORS["bedrock"].answer
    (known,) = read("bedrock", line, model="m")
    (unknown,) = read("bedrock", line)
    assert known.response is not None
    assert unknown.response is not None
    assert (known.response.model, unknown.response.model) == ("m", "unknown")
    assert known.response.metadata.provenance["model"] is Provenance.DERIVED
    (named,) = read("openai", openai_line(CHAT), model="m")
    assert named.response is not None
    assert named.response.model == "gpt-x-2026"


def test_an_answer_without_an_id_has_that_of_its_request() -> None:
    (result,) = read("bedrock", VENDORS["bedrock"].answer)
    (nameless,) = read("bedrock", {"modelInput": {}, "modelOutput": CONVERSE, "recordId": None})
    assert result.response is not None
    assert result.response.id == "r2"
    assert nameless.id is None
    assert nameless.response is not None
    assert nameless.response.id


def test_the_raw_bytes_can_be_left_out_and_nothing_shows_the_conversation() -> None:
    with_raw, without = (
        read("openai", openai_line({**CHAT, "secret": "hush"}), keep_raw=keep)[0] for keep in (True, False)
    )
    assert with_raw.response is not None
    assert without.response is not None
    assert [bool(one.response.raw_events) for one in (with_raw, without)] == [True, False]
    (request,) = build_batch_requests({"r1": ask("openai", "hush hush")}, "openai")
    assert "hush" not in repr(request) + repr(with_raw)
    assert "r1" in repr(request)
