"""Services and servers that speak OpenAI's dialect (provider document "OpenAI Chat Completions", section 9).

SGLang's captures were recorded by this project from servers that it ran. The others are invented after that
document.
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import orjson
import pytest

from crosswalk import (
    ChatResponse,
    CitationRef,
    ErrorKind,
    FinishReason,
    IncompleteStreamError,
    Provenance,
    SegmentType,
    TrailingContentError,
    UnknownFinishReasonError,
    UsageInfo,
    WireTypeError,
    from_json,
    normalize,
    registry,
    to_json,
)
from crosswalk.convert import WireForm, convert
from crosswalk.plugins import Cost, Recognition
from crosswalk.testing import ProviderConformance
from crosswalk_openai import lookalikes
from wires import body, chunk, one, outcome, read, sse, usage

T = SegmentType
NAMES = (
    "deepseek",
    "fireworks",
    "groq",
    "lmstudio",
    "mistral",
    "openrouter",
    "perplexity",
    "sglang",
    "together",
    "xai",
)


class Lookalike(ProviderConformance):
    __test__ = False
    snapshots = "../../snapshots"
    sample = 12

    def __init_subclass__(cls) -> None:
        cls.__test__ = True
        cls.captures = f"../captures/{cls.provider}"


class TestDeepSeek(Lookalike):
    provider = "deepseek"


class TestFireworks(Lookalike):
    provider = "fireworks"


class TestGroq(Lookalike):
    provider = "groq"


class TestLMStudio(Lookalike):
    provider = "lmstudio"


class TestMistral(Lookalike):
    provider = "mistral"


class TestOpenRouter(Lookalike):
    provider = "openrouter"


class TestPerplexity(Lookalike):
    provider = "perplexity"


class TestTogether(Lookalike):
    provider = "together"


class TestXAI(Lookalike):
    provider = "xai"


class TestSGLang(ProviderConformance):
    provider = "sglang"
    captures = "../captures/sglang"
    snapshots = "../../snapshots"
    sample = 6


def stream(provider: str, *events: Any, done: bool = True) -> ChatResponse:
    return read(provider, sse(*events, done=done))[1]


def kinds(response: ChatResponse) -> list[tuple[SegmentType, str]]:
    return [(segment.type, segment.content) for segment in response.segments]


def extensions(response: ChatResponse) -> Any:
    return response.metadata.extensions.thawed()


def with_usage(provider: str, counts: Any) -> ChatResponse:
    return one(provider, body({"content": "x"}, usage=counts))


# -------------------------------------------------------------------------------------------- all of them


@pytest.mark.parametrize("name", NAMES)
def test_plain_answers_are_the_same_everywhere(name: str) -> None:
    whole = one(name, body({"content": "Hello"}, usage=usage(3, 1)))
    pieces = stream(name, chunk({"content": "Hel"}), chunk({"content": "lo"}), chunk({}, "stop"))
    assert whole.text == pieces.text == "Hello"
    assert (whole.usage, whole.metadata.provider_id) == (UsageInfo(3, 1), name)
    assert registry.mapper(name).info.documentation


@pytest.mark.parametrize("name", NAMES)
def test_an_unknown_word_is_refused_everywhere(name: str) -> None:
    with pytest.raises(UnknownFinishReasonError, match="nonsense"):
        one(name, body({"content": "x"}, "nonsense"))


@pytest.mark.parametrize(
    ("name", "counts", "expected", "left"),
    [
        (
            "deepseek",
            usage(18, 5, prompt_cache_hit_tokens=16, prompt_cache_miss_tokens=2),
            UsageInfo(18, 5, 16),
            None,
        ),
        (
            "deepseek",
            usage(18, 5, prompt_cache_hit_tokens=16, prompt_cache_miss_tokens=3),
            UsageInfo(18, 5, 16),
            {"prompt_cache_miss_tokens": 3},
        ),
        (
            "deepseek",
            usage(18, 5, prompt_cache_miss_tokens=18),
            UsageInfo(18, 5),
            {"prompt_cache_miss_tokens": 18},
        ),
        (
            "deepseek",
            usage(18, 5, prompt_cache_hit_tokens=-1),
            UsageInfo(18, 5),
            {"prompt_cache_hit_tokens": -1},
        ),
        ("deepseek", {"prompt_cache_miss_tokens": 2}, UsageInfo(0, 0), {"prompt_cache_miss_tokens": 2}),
        (
            "deepseek",
            usage(18, 5, prompt_cache_hit_tokens=16, prompt_tokens_details={"cached_tokens": 4}),
            UsageInfo(18, 5, 4),
            {"prompt_cache_hit_tokens": 16},
        ),
        (
            "deepseek",
            usage(18, 5, prompt_cache_hit_tokens=16, prompt_tokens_details={"cached_tokens": 16}),
            UsageInfo(18, 5, 16),
            None,
        ),
        ("mistral", usage(18, 5, num_cached_tokens=8), UsageInfo(18, 5, 8), None),
        ("mistral", usage(18, 5, prompt_audio_seconds=5), UsageInfo(18, 5), {"prompt_audio_seconds": 5}),
        ("sglang", usage(18, 5, reasoning_tokens=3), UsageInfo(18, 5, None, 3), None),
        (
            "sglang",
            usage(18, 5, reasoning_tokens=0, completion_tokens_details=None),
            UsageInfo(18, 5, None, 0),
            None,
        ),
        ("together", usage(18, 5, cached_tokens=0), UsageInfo(18, 5, 0), None),
        ("perplexity", usage(18, 5, reasoning_tokens=99), UsageInfo(18, 5), {"reasoning_tokens": 99}),
    ],
)
def test_counts_beside_the_details(name: str, counts: Any, expected: UsageInfo, left: Any) -> None:
    response = with_usage(name, counts)
    assert response.usage == expected
    assert extensions(response).get("usage") == left


@pytest.mark.parametrize(
    ("name", "mark"),
    [
        (
            "deepseek",
            {
                "usage": {"prompt_cache_hit_tokens": 0, "prompt_cache_miss_tokens": 1},
                "system_fingerprint": "fp_1",
            },
        ),
        ("fireworks", {"perf_metrics": {}}),
        ("fireworks", {"choices": [{"raw_output": {}}]}),
        ("groq", {"x_groq": {"id": "r"}}),
        ("lmstudio", {"stats": {}, "model_info": {}, "runtime": {}}),
        ("mistral", {"usage": {"prompt_audio_seconds": None}}),
        ("mistral", {"choices": [{"delta": {"content": [{"type": "thinking", "thinking": []}]}}]}),
        ("mistral", {"choices": [{"message": {"content": [{"reference_ids": [1]}]}}]}),
        ("openrouter", {"choices": [{"native_finish_reason": None}]}),
        ("perplexity", {"usage": {"search_context_size": "low"}}),
        ("sglang", {"choices": [{"matched_stop": None}]}),
        ("sglang", {"sglext": {}}),
        ("together", {"choices": [{"seed": None}]}),
    ],
)
def test_marks_that_nobody_else_sets(name: str, mark: Any) -> None:
    event = {**body({"content": "x"}), **mark}
    found = {other: getattr(lookalikes, other).recognizes(event) for other in NAMES}
    assert found.pop(name) is Recognition.CERTAIN
    assert set(found.values()) == {Recognition.POSSIBLE}


@pytest.mark.parametrize("kind", ["text", "output_text", "image"])
def test_a_list_of_content_alone_is_no_mark(kind: str) -> None:
    """Many services of the dialect answer so."""
    event = body({"content": [{"type": kind, "text": "x"}]})
    assert {getattr(lookalikes, name).recognizes(event) for name in NAMES} == {Recognition.POSSIBLE}


def test_counts_of_a_cache_alone_are_no_mark() -> None:
    """Engines for DeepSeek's models send them too."""
    counts = {"prompt_cache_hit_tokens": 0, "prompt_cache_miss_tokens": 1}
    event = body({"content": "x"}, usage=counts, system_fingerprint="")
    assert lookalikes.deepseek.recognizes(event) is Recognition.POSSIBLE


@pytest.mark.parametrize("event", [{"choices": ["odd"], "usage": "odd"}, {"choices": []}])
def test_odd_payloads_are_recognized_by_none_for_certain(event: Any) -> None:
    found = {getattr(lookalikes, name).recognizes(event) for name in NAMES}
    assert found == {Recognition.POSSIBLE}


@pytest.mark.parametrize(
    ("name", "status", "error", "kind"),
    [
        ("groq", 400, {"error": {"message": "x", "code": "tool_use_failed"}}, ErrorKind.TOOL_CALL_VALIDATION),
        ("groq", 498, {"error": {"message": "flex tier full"}}, ErrorKind.RATE_LIMIT),
        ("mistral", 422, {"detail": [{"loc": ["body"], "msg": "Field required"}]}, ErrorKind.INVALID_REQUEST),
        (
            "mistral",
            400,
            {"object": "error", "message": "no", "type": "invalid_model", "code": "1500"},
            ErrorKind.MODEL_UNAVAILABLE,
        ),
        ("mistral", 401, "Unauthorized", ErrorKind.AUTHENTICATION),
        ("openrouter", 429, {"error": {"message": "busy", "code": 429}}, ErrorKind.RATE_LIMIT),
        (
            "perplexity",
            400,
            {"error": {"message": "no", "type": "too_many_prompt_tokens", "code": 400}},
            ErrorKind.CONTEXT_OVERFLOW,
        ),
        (
            "perplexity",
            401,
            {"error": {"message": "no", "type": "invalid_api_key"}},
            ErrorKind.AUTHENTICATION,
        ),
        ("sglang", 400, {"object": "error", "message": "no", "code": 400}, ErrorKind.INVALID_REQUEST),
    ],
)
def test_errors(name: str, status: int, error: Any, kind: ErrorKind) -> None:
    info = one(name, error if isinstance(error, dict) else error.encode(), status=status).error_info
    assert info is not None
    assert info.kind is kind


# ----------------------------------------------------------------------------------------------- DeepSeek


def test_deepseek_out_of_resources_may_be_tried_again() -> None:
    response = stream("deepseek", chunk({"content": "Thr"}), chunk({}, "insufficient_system_resource"))
    assert response.error_info is not None
    assert (response.text, response.error_info.kind, response.error_info.retryable) == (
        "Thr",
        ErrorKind.SERVER,
        True,
    )


# --------------------------------------------------------------------------------------------------- Groq

TIMES = {"queue_time": 0.25, "total_time": 0.625}


@pytest.mark.parametrize(
    ("top", "own", "left"),
    [
        (usage(3, 1, **TIMES), None, {"usage": TIMES}),
        (None, usage(3, 1, **TIMES), {"x_groq": {"id": "r", "usage": TIMES}}),
        (usage(3, 1, **TIMES), usage(3, 1, **TIMES), {"usage": TIMES, "x_groq": {"id": "r"}}),
        (usage(3, 1), usage(9, 9), {"x_groq": {"id": "r", "usage": usage(9, 9)}}),
    ],
)
def test_groq_usage_in_either_place(top: Any, own: Any, left: Any) -> None:
    whole = body({"content": "x"}, x_groq={"id": "r", **({"usage": own} if own else {})})
    response = one("groq", whole if top is None else {**whole, "usage": top})
    assert response.usage == UsageInfo(3, 1)
    found = extensions(response)
    assert {key: found[key] for key in left} == left


@pytest.mark.parametrize(
    ("seconds", "duration"),
    [
        (0.625, timedelta(seconds=0.625)),
        (2, timedelta(seconds=2)),
        (-1, None),
        (1e300, None),
        ("0.625", None),
        (True, None),
    ],
)
def test_groq_says_how_long_it_took(seconds: Any, duration: timedelta | None) -> None:
    response = with_usage("groq", usage(3, 1, total_time=seconds))
    assert (response.text, response.usage) == ("x", UsageInfo(3, 1))
    assert response.metadata.request_duration == (duration or timedelta(0))
    assert extensions(response)["usage"] == {"total_time": seconds}
    noted = response.metadata.provenance.get("metadata.extensions.usage.total_time")
    assert noted is (Provenance.MISTYPED if duration is None else None)


@pytest.mark.parametrize(
    ("own", "path"),
    [
        ("r", "x_groq"),
        ({"usage": 7}, "x_groq.usage"),
        ({"usage": {"prompt_tokens": -1}}, "x_groq.usage.prompt_tokens"),
    ],
)
def test_groq_own_object_of_another_type_stays(own: Any, path: str) -> None:
    response = one("groq", body({"content": "x"}, x_groq=own))
    assert response.text == "x"
    assert extensions(response)["x_groq"] == own
    assert response.metadata.provenance[f"metadata.extensions.{path}"] is Provenance.MISTYPED


def test_groq_usage_without_counts_beside_one_with_them() -> None:
    response = one("groq", body({"content": "x"}, usage=TIMES, x_groq={"usage": usage(3, 1)}))
    assert response.usage == UsageInfo(3, 1)
    assert extensions(response)["usage"] == TIMES


def test_groq_error_as_a_text_in_its_own_object() -> None:
    response = stream(
        "groq", chunk({"content": "Thr"}), chunk(x_groq={"id": "r", "error": "over capacity"}), done=False
    )
    assert (response.text, response.refusal) == ("Thr", "over capacity")


# --------------------------------------------------------------------------------------------- OpenRouter


def detail(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": f"reasoning.{kind}", "format": "f", "index": 0, **more}


@pytest.mark.parametrize(
    ("message", "reasoning", "left"),
    [
        ({"reasoning": "A", "reasoning_details": [detail("text", text="B")]}, "B", {"reasoning": "A"}),
        ({"reasoning": "A", "reasoning_details": []}, "A", {}),
        ({"reasoning": "A", "reasoning_content": "A"}, "A", {}),
        ({"reasoning": "A", "reasoning_content": "B"}, "A", {"reasoning_content": "B"}),
        ({"reasoning_content": "B", "reasoning_details": [detail("encrypted", data="x")]}, "B", {}),
        (
            {"reasoning_details": [detail("server_tool_call", tool_name="search", result="r")]},
            "",
            {"reasoning_details": [detail("server_tool_call", tool_name="search", result="r")]},
        ),
    ],
)
def test_openrouter_which_reasoning_counts(message: Any, reasoning: str, left: Any) -> None:
    response = one("openrouter", body({"content": "x", **message}))
    assert response.reasoning == reasoning
    found = extensions(response).get("choices", [{}])[0].get("message", {})
    if "text" in str(message):
        found = {key: value for key, value in found.items() if key != "reasoning_details"}
    assert found == left


@pytest.mark.parametrize("more", [{}, {"is_byok": False}, {"cost_details": {}}], ids=str)
def test_openrouter_counts_in_dollars(more: dict[str, Any]) -> None:
    """Its credits are dollars ("Usage Accounting" in its documentation), whatever is next to the number."""
    counts = {**usage(18, 5), "cost": 0.00015, **more}
    whole = one("openrouter", {**body({"content": "x"}), "usage": counts})
    last = {**chunk({}, "stop"), "usage": counts}
    for response in (whole, stream("openrouter", chunk({"content": "x"}), last)):
        assert response.usage is not None
        assert response.usage.cost == Cost(Decimal("0.00015"))
        assert extensions(response)["usage"] == {"cost": 0.00015, **more}
    other = one("vllm", {**body({"content": "x"}), "usage": counts | {"cost": 0.5}}).usage
    assert other is not None
    assert (other.cost is None) is (not more)


def test_openrouter_images() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO"}}
    images = [image, {"type": "image_url", "image_url": {}}]
    response = one("openrouter", body({"content": "A crab.", "images": images}))
    assert kinds(response) == [(T.TEXT, "A crab."), (T.MEDIA, "data:image/png;base64,iVBO")]
    assert extensions(response)["choices"][0]["message"]["images"] == [
        {},
        {"type": "image_url"},
    ]


def test_openrouter_a_native_word_that_no_shipped_provider_knows() -> None:
    """A foreign plugin is not asked, whatever it says."""
    end = chunk({}, "stop")
    end["choices"][0]["native_finish_reason"] = "weary"
    registry.register(one_more := lookalikes.Groq(), "foreign")
    try:
        response = stream("openrouter", chunk({"content": "x"}), end)
    finally:
        registry.unregister(one_more, "foreign")
    assert (response.finish_reason, response.is_complete) == ("stop", True)


@pytest.mark.parametrize("provider", ["openai", "mistral"])
def test_content_that_is_an_object_is_its_json(provider: str) -> None:
    assert one(provider, body({"content": {"a": 1}})).text == '{"a":1}'


def test_openrouter_error_of_a_choice() -> None:
    whole = body({"content": "Par"}, "error")
    whole["choices"][0]["error"] = {"code": 429, "message": "Upstream is busy"}
    response = one("openrouter", whole)
    assert response.error_info is not None
    assert (response.text, response.error_info.kind, response.error_info.status) == (
        "Par",
        ErrorKind.RATE_LIMIT,
        429,
    )
    assert "choices" not in extensions(response)
    whole["choices"][0] |= {"error": None, "finish_reason": "stop"}
    assert extensions(one("openrouter", whole))["choices"] == [{"index": 0, "error": None}]


@pytest.mark.parametrize(
    "message",
    [
        {"reasoning_details": "x"},
        {"reasoning_details": ["x"]},
        {"reasoning_details": [{"type": []}]},
        {"reasoning_details": [detail("text", text=7)]},
        {"reasoning_details": [detail("encrypted", data=7)]},
    ],
)
def test_openrouter_reasoning_of_another_type_is_refused_and_the_text_kept(message: Any) -> None:
    with pytest.raises(WireTypeError) as caught:
        one("openrouter", body({"content": "x", **message}))
    assert caught.value.partial is not None
    assert caught.value.partial.text == "x"


@pytest.mark.parametrize(
    ("message", "path"),
    [
        (
            {"reasoning_details": [detail("encrypted", data="x") | {"index": "0"}]},
            "reasoning_details[0].index",
        ),
        (
            {"reasoning_details": [detail("encrypted", data="x") | {"format": 7}]},
            "reasoning_details[0].format",
        ),
        ({"reasoning_details": [detail("encrypted", data="x", id=7)]}, "reasoning_details[0].id"),
        ({"images": ["x"]}, "images[0]"),
        ({"images": [{"image_url": {"url": 7}}]}, "images[0].image_url.url"),
    ],
)
def test_openrouter_side_fields_of_another_type_stay(message: Any, path: str) -> None:
    response = one("openrouter", body({"content": "x", **message}))
    assert response.text == "x"
    noted = f"metadata.extensions.choices[0].message.{path}"
    assert response.metadata.provenance[noted] is Provenance.MISTYPED


def test_openrouter_a_detail_without_a_type_is_kept() -> None:
    response = one("openrouter", body({"content": "x", "reasoning_details": [{"text": "Hm"}]}))
    assert extensions(response)["choices"][0]["message"]["reasoning_details"] == [{"text": "Hm"}]


def test_openrouter_what_is_left_of_a_detail_says_whose_it_is() -> None:
    details = [detail("encrypted", data="x") | {"index": 1, "new": True}, detail("encrypted", data="y")]
    response = one("openrouter", body({"content": "x", "reasoning_details": details}))
    assert extensions(response)["choices"][0]["message"]["reasoning_details"] == [{"index": 1, "new": True}]
    assert [s.metadata.get("index") for s in response.segments if s.type is T.REASONING] == [1, 0]


def test_openrouter_plain_reasoning_of_another_type_beside_details_stays() -> None:
    message = {"content": "x", "reasoning": 7, "reasoning_details": [detail("text", text="Hm")]}
    response = one("openrouter", body(message))
    assert response.reasoning == "Hm"
    assert extensions(response)["choices"][0]["message"]["reasoning"] == 7


@pytest.mark.parametrize("name", ["openrouter", "openai"])
@pytest.mark.parametrize(
    ("deltas", "reasoning"),
    [
        # The details repeat, in chunks of their own, what came under a plain name, or the other way round.
        ([{"reasoning": "ab"}, {"reasoning_details": [detail("text", text="ab")]}], "ab"),
        ([{"reasoning_details": [detail("text", text="ab")]}, {"reasoning": "ab"}], "ab"),
        (
            [{"reasoning": "ab"}, {"reasoning": "cd"}, {"reasoning_details": [detail("text", text="abcd")]}],
            "abcd",
        ),
        (
            [
                {"reasoning": "ab"},
                {"reasoning_details": [detail("text", text="a"), detail("text", text="b")]},
            ],
            "ab",
        ),
        ([{"reasoning_content": "ab"}, {"reasoning_details": [detail("summary", summary="ab")]}], "ab"),
        # Both at once: what either says later is news.
        (
            [
                {"reasoning": "ab", "reasoning_details": [detail("text", text="ab")]},
                {"reasoning_details": [detail("text", text="ab")]},
                {"reasoning": "a"},
            ],
            "ababa",
        ),
        ([{"reasoning": "ab"}, {"reasoning_details": [detail("text", text="xy")]}], "abxy"),
    ],
)
def test_reasoning_in_details_and_under_a_plain_name_counts_once(
    name: str, deltas: list[Any], reasoning: str
) -> None:
    response = stream(name, *(chunk(delta) for delta in deltas), chunk({"content": "4"}, "stop"))
    assert (response.reasoning, response.text) == (reasoning, "4")


def test_openrouter_details_that_repeat_reasoning_still_give_their_signature() -> None:
    details = [detail("text", text="Hm.", signature="c2ln")]
    response = stream(
        "openrouter",
        chunk({"reasoning": "H"}),
        chunk({"reasoning": "m."}),
        chunk({"reasoning_details": details}),
        chunk({"content": "4"}, "stop"),
    )
    assert kinds(response) == [(T.REASONING, "Hm."), (T.TEXT, "4")]
    assert response.segments[0].metadata["signature"] == "c2ln"


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("openrouter", {"error": {"message": "No endpoints found for maker/model.", "code": 404}}),
        ("openrouter", {"error": {"message": "The alpha period for this model has ended.", "code": 404}}),
        ("openai", {"error": {"code": "DeploymentNotFound", "message": "It does not exist."}}),
        ("xai", {"code": "not-found", "error": "The model grok-beta was deprecated on 2025-09-15."}),
    ],
)
def test_a_model_that_is_not_there(name: str, error: Any) -> None:
    info = one(name, error, status=404).error_info
    assert info is not None
    assert info.kind is ErrorKind.MODEL_UNAVAILABLE


# ------------------------------------------------------------------------------------------------ Mistral


def test_mistral_content_in_chunks() -> None:
    thinking = {
        "type": "thinking",
        "thinking": [{"type": "text", "text": "Five"}, {"type": "odd"}, {"type": "text", "text": "."}],
        "signature": "c2ln",
        "closed": True,
    }
    content = [
        thinking,
        {"type": "text", "text": "Eight."},
        {"type": "text", "text": ""},
        {"type": "reference", "reference_ids": [1, 3]},
        {"type": "image_url", "image_url": "u"},
    ]
    response = one("mistral", body({"content": content}))
    assert kinds(response) == [
        (T.REASONING, "Five."),
        (T.TEXT, "Eight."),
        (T.CITATION, ""),
    ]
    assert response.segments[0].metadata.thawed() == {"signature": "c2ln"}
    assert response.segments[2].annotations == (CitationRef("1"), CitationRef("3"))
    assert extensions(response)["choices"][0]["message"]["content"] == [
        {"thinking": [{}, {"type": "odd"}, {}], "closed": True},
        {},
        {},
        {},
        {"type": "image_url", "image_url": "u"},
    ]


def test_a_chunk_that_nobody_knows_leaves_the_text_unmapped() -> None:
    known = [{"type": "text", "text": "Hi"}, {"type": "reference", "reference_ids": []}]
    response = one("mistral", body({"content": known}))
    assert "message.content" not in response.metadata.provenance
    for unknown in ({"type": "odd"}, {"odd": 1}):
        response = one("mistral", body({"content": [*known, unknown]}))
        assert response.text == "Hi"
        assert response.metadata.provenance["message.content"] is Provenance.UNMAPPED


def test_mistral_no_chunks_are_no_text() -> None:
    response = one("mistral", body({"content": []}))
    assert (kinds(response), response.finish_reason) == ([], FinishReason.STOP)
    assert "choices" not in extensions(response)


def test_mistral_calls_without_an_id_and_with_objects() -> None:
    calls = [
        {"id": "null", "function": {"name": "tide", "arguments": {"at": "noon"}}},
        {"id": "gSIMJiOkT", "function": {"name": "tide", "arguments": '{"at": "dusk"}'}},
    ]
    response = one("mistral", body({"content": "", "tool_calls": calls}, "tool_calls"))
    assert [(c.id, c.arguments) for c in response.tool_calls] == [
        ("call_0", '{"at":"noon"}'),
        ("gSIMJiOkT", '{"at": "dusk"}'),
    ]
    assert response.metadata.provenance["message.tool_calls[0].id"] is Provenance.SYNTHETIC
    assert "choices" not in extensions(response)


@pytest.mark.parametrize(
    ("message", "place"),
    [
        ({"content": ["x"]}, "content[0]"),
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": 7}]}, "content[1].text"),
        ({"content": [{"type": 7}]}, "content[0].type"),
        ({"content": [{"type": "thinking", "thinking": "x"}]}, "content[0].thinking"),
        (
            {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": 7}]}]},
            "content[0].thinking[0].text",
        ),
        ({"content": [{"type": "text", "text": "a"}], "tool_calls": ["x"]}, "tool_calls[0]"),
    ],
)
def test_mistral_wrong_types(message: Any, place: str) -> None:
    with pytest.raises(WireTypeError) as caught:
        one("mistral", body(message))
    assert caught.value.place == f"event 1, choices[0].message.{place}"
    assert caught.value.partial is not None
    assert caught.value.partial.text == ("a" if "'a'" in str(message) else "")


@pytest.mark.parametrize("ids", [[[1]], [{}], [1.5], "x", [True]])
def test_mistral_references_of_another_type_stay(ids: Any) -> None:
    content = [{"type": "text", "text": "Hi"}, {"type": "reference", "reference_ids": ids}, {"kind": "new"}]
    response = one("mistral", body({"content": content}))
    assert kinds(response) == [(T.TEXT, "Hi")]
    left = [{}, {"type": "reference", "reference_ids": ids}, {"kind": "new"}]
    assert extensions(response)["choices"][0]["message"]["content"] == left
    noted = "metadata.extensions.choices[0].message.content[1].reference_ids"
    assert response.metadata.provenance[noted] is Provenance.MISTYPED


# ---------------------------------------------------------------------------------------------------- xAI


@pytest.mark.parametrize(
    ("counts", "completion", "derived"),
    [
        ({"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 325}, 305, True),
        ({"prompt_tokens": 20, "completion_tokens": 305, "total_tokens": 325}, 305, False),
        ({"prompt_tokens": 20, "completion_tokens": 305}, 305, False),
    ],
)
def test_xai_counts_reasoning_beside_the_completion(counts: Any, completion: int, derived: bool) -> None:
    response = with_usage("xai", {**counts, "completion_tokens_details": {"reasoning_tokens": 300}})
    assert response.usage == UsageInfo(20, completion, None, 300)
    assert ("usage.completion_tokens" in response.metadata.provenance) is derived
    assert "usage" not in extensions(response)


def test_xai_total_that_adds_up_in_no_way_is_kept() -> None:
    assert extensions(with_usage("xai", {**usage(20, 5), "total_tokens": 99}))["usage"] == {
        "total_tokens": 99
    }


@pytest.mark.parametrize("total", [None, "325", True])
def test_xai_total_of_another_type_tells_nothing(total: Any) -> None:
    counts = {**usage(20, 5), "total_tokens": total, "completion_tokens_details": {"reasoning_tokens": 300}}
    response = with_usage("xai", counts)
    assert response.usage == UsageInfo(20, 5, None, 300)
    assert extensions(response).get("usage") == (None if total is None else {"total_tokens": total})
    noted = response.metadata.provenance.get("metadata.extensions.usage.total_tokens")
    assert noted == (None if total is None else "mistyped")


@pytest.mark.parametrize("word", ["", "tool_calls"])
def test_xai_may_end_a_call_with_an_empty_word(word: str) -> None:
    call = {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    response = stream("xai", chunk({"tool_calls": [call]}, word))
    assert (response.finish_reason, response.raw_finish_reason) == (FinishReason.TOOL_CALLS, word)
    assert ("finish_reason" in response.metadata.provenance) is (word == "")


def test_xai_an_empty_word_beside_text_is_no_end() -> None:
    assert isinstance(outcome("xai", sse(chunk({"content": "x"}, "")))[1], IncompleteStreamError)


# --------------------------------------------------------------------------------------------- Perplexity


def searched(text: str, so_far: str, finish: str | None = None, **more: Any) -> dict[str, Any]:
    event = chunk({"role": "assistant", "content": text}, finish, **more)
    event["choices"][0]["message"] = {"role": "assistant", "content": so_far}
    return event


def test_perplexity_after_the_chunk_that_ends_it_another_answer_has_begun() -> None:
    last = searched(" you", "Hi you", "stop") | {"object": "chat.completion.done"}
    partial, error = outcome("perplexity", sse(searched("Hi", "Hi"), last, searched("Yo", "Yo")))
    assert isinstance(error, TrailingContentError)
    assert partial.text == "Hi you"


def test_perplexity_message_that_says_something_else_is_kept() -> None:
    response = stream("perplexity", searched("Hi", "Ho"), searched("", "", "stop"))
    assert extensions(response)["choices"][0]["message"] == {"content": "Ho"}


@pytest.mark.sweep
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("delta", [None, {}, {"content": ""}, {"role": "assistant", "content": None}])
def test_a_body_with_an_empty_delta_beside_its_message(name: str, delta: Any) -> None:
    event = body({"content": "Noon."})
    event["choices"][0]["delta"] = delta
    response = one(name, event)
    assert (response.text, response.finish_reason) == ("Noon.", FinishReason.STOP)
    assert "choices" not in extensions(response)


def test_perplexity_message_of_another_choice_is_kept() -> None:
    event = searched("a", "a", "stop")
    other = searched("b", "a", "stop")["choices"][0] | {"index": 1}
    event["choices"].append(other)
    response = stream("perplexity", event)
    assert extensions(response)["choices"] == [{"index": 1, "message": {"content": "a"}}]


def test_perplexity_message_beside_nothing_said_yet_is_kept() -> None:
    response = stream("perplexity", searched("", 0, None), searched("Hi", "Hi", "stop"))  # type: ignore[arg-type]
    assert response.text == "Hi"
    assert extensions(response)["choices"][0]["message"] == {"content": 0}


def test_perplexity_part_that_is_no_object_is_kept() -> None:
    event = searched("Hi", "Hi", "stop")
    event["choices"][0]["message"] = ["Hi"]
    assert extensions(stream("perplexity", event))["choices"] == [{"index": 0, "message": ["Hi"]}]


def test_perplexity_results_alone_are_sources_too() -> None:
    results = [{"url": "https://a", "title": "A"}, {"title": "nowhere"}]
    response = one("perplexity", body({"content": "x"}, search_results=results))
    assert response.segments[0].annotations == (CitationRef(None, "https://a"),)
    assert extensions(response)["search_results"] == [{}, {"title": "nowhere"}]


def test_perplexity_other_results_without_a_list_are_kept() -> None:
    response = stream(
        "perplexity",
        searched("Hi", "Hi", search_results=[{"url": "https://a"}]),
        searched("!", "Hi!", "stop", search_results=[{"url": "https://z"}]),
    )
    assert kinds(response) == [(T.CITATION, ""), (T.TEXT, "Hi!")]
    assert extensions(response)["search_results"] == [{"url": "https://z"}]


def test_perplexity_another_list_of_sources_is_kept() -> None:
    response = stream(
        "perplexity",
        searched("Hi", "Hi", citations=["https://a"]),
        searched("!", "Hi!", "stop", citations=["https://z"]),
    )
    assert kinds(response) == [(T.CITATION, ""), (T.TEXT, "Hi!")]
    assert extensions(response)["citations"] == ["https://z"]


@pytest.mark.parametrize(
    ("more", "path", "sources"),
    [
        ({"citations": [7]}, "citations", []),
        ({"citations": ["https://a", {"url": "https://b"}]}, "citations", []),
        ({"citations": "x"}, "citations", []),
        ({"search_results": ["x"]}, "search_results[0]", []),
        ({"search_results": [{"url": 7, "title": "A"}]}, "search_results[0].url", []),
        (
            {"citations": ["https://a"], "search_results": [{"url": "https://a", "title": 7}]},
            "search_results[0].title",
            ["https://a"],
        ),
    ],
)
def test_perplexity_sources_of_another_type_cost_the_source(more: Any, path: str, sources: list[str]) -> None:
    response = one("perplexity", body({"content": "x"}, **more))
    assert response.text == "x"
    assert [
        c.source for s in response.segments for c in s.annotations if isinstance(c, CitationRef)
    ] == sources
    assert response.metadata.provenance[f"metadata.extensions.{path}"] is Provenance.MISTYPED
    value, sent = extensions(response), more
    for key in path.replace("[", ".").replace("]", "").split("."):
        value, sent = (holder[int(key) if key.isdigit() else key] for holder in (value, sent))
    assert value == sent


def test_perplexity_results_of_which_some_are_shown() -> None:
    results = [{"url": "https://b", "title": "B"}, {"url": "https://a", "title": "A"}, {"url": None}]
    response = one("perplexity", body({"content": "x"}, citations=["https://a"], search_results=results))
    assert kinds(response) == [(T.CITATION, "A"), (T.TEXT, "x")]
    assert extensions(response)["search_results"] == [{"url": "https://b", "title": "B"}, {}, {}]


@pytest.mark.parametrize("name", ["perplexity", "xai"])
def test_no_object_is_no_event(name: str) -> None:
    with pytest.raises(WireTypeError, match="the event"):
        one(name, b"[1]")


# ----------------------------------------------------------------------------------------------- Together


def together(text: Any, number: Any, **more: Any) -> dict[str, Any]:
    event = chunk({"content": text, "token_id": 1})
    event["choices"][0] |= {"text": text, "logprobs": number, **more}
    return event


def test_together_a_number_without_a_token_is_kept() -> None:
    response = stream("together", together(None, -0.5), together("b", None, finish_reason="stop"))
    assert response.logprobs is None
    assert extensions(response)["choices"][0]["logprobs"] == -0.5


def test_together_another_text_is_kept() -> None:
    event = together("a", None, finish_reason="stop") | {}
    event["choices"][0]["text"] = "z"
    assert extensions(stream("together", event))["choices"][0]["text"] == "z"


# ------------------------------------------------------------------------------------------------ the sentinel

CHAT_SERVERS = sorted({*NAMES, "llamacpp", "ollama", "openai", "tgi", "vllm"})


@pytest.mark.sweep
@pytest.mark.parametrize("done", [True, False])
@pytest.mark.parametrize("name", CHAT_SERVERS)
def test_usage_that_was_cut_off_is_told_from_usage_that_never_came(name: str, done: bool) -> None:
    """Also where the dialect is one of several that the server speaks. Perplexity's streams end without ``[DONE]``."""
    response = stream(name, chunk({"content": "x"}), chunk({}, "stop"), done=done)
    assert (response.text, response.is_complete) == ("x", True)
    has_sentinel = name != "perplexity"
    assert response.metadata.provenance["usage"] == ("cut" if has_sentinel and not done else "absent")


# --------------------------------------------------------------------------------- Fireworks, LM Studio, SGLang


def test_fireworks_calls_without_an_index_are_calls_of_their_own() -> None:
    calls = [
        {"id": f"call_{n}", "type": "function", "function": {"name": "read", "arguments": a}}
        for n, a in enumerate(['{"p":"a"}', {"p": "b"}])
    ]
    response = stream(
        "fireworks", chunk({"tool_calls": calls[:1]}), chunk({"tool_calls": calls[1:]}, "tool_calls")
    )
    assert [(c.id, c.arguments) for c in response.tool_calls] == [
        ("call_0", '{"p":"a"}'),
        ("call_1", '{"p":"b"}'),
    ]


@pytest.mark.parametrize(
    ("provider", "more"),
    [("perplexity", {"citations": ["https://a/", "https://b/"]}), ("sglang", {})],
    ids=["sources without titles", "no count of reasoning"],
)
def test_what_a_server_did_not_say_does_not_come_back(provider: str, more: dict[str, Any]) -> None:
    sent = {**body({"content": "Hi [1]."}, usage=usage(1, 2)), **more}
    back = orjson.loads(
        convert(from_json(to_json(normalize(sent, provider)), ChatResponse), WireForm.OPENAI_CHAT).value
    )
    for key in ("citations", "search_results", "usage"):
        assert back.get(key) == sent.get(key)
    assert "delta" not in back["choices"][0]
