"""Which provider is a payload of unknown origin from?"""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import orjson
import pytest

from crosswalk import (
    ChatMessage,
    ChatResponse,
    DetectionError,
    Limits,
    PluginError,
    UnknownEventError,
    UsageInfo,
    detect,
    normalize,
    registry,
)
from crosswalk.codec import to_json
from crosswalk.mapping.detect import candidates, fault_of
from crosswalk.plugin.registry import ENTRY_POINT_GROUP, Registry
from crosswalk.plugins import (
    DialectFamily,
    MappingState,
    OpenAIChatDialect,
    ProviderInfo,
    Recognition,
    event_type,
    hookimpl,
)
from wires import Echo, body, chunk, line, ndjson, registry_of, sse

CAPTURES = Path(__file__).parents[2] / "captures"
CERTAIN, POSSIBLE, NO = Recognition.CERTAIN, Recognition.POSSIBLE, Recognition.NO
PLAIN, CHUNK = body({"content": "Hi"}), chunk({"content": "Hi"})


@pytest.mark.parametrize(
    ("event", "ollama", "vllm"),
    [
        (line("Hi"), CERTAIN, NO),
        ({"model": "m", "response": "Hi", "done": False}, CERTAIN, NO),
        ({"message": {}}, NO, NO),
        ({"done": True}, NO, NO),
        ({"error": "It broke"}, POSSIBLE, POSSIBLE),
        ({"error": {"message": "It broke"}}, POSSIBLE, POSSIBLE),
        ({"object": "error", "message": "It broke"}, POSSIBLE, POSSIBLE),
        (PLAIN, POSSIBLE, POSSIBLE),
        (CHUNK, POSSIBLE, POSSIBLE),
        (PLAIN | {"system_fingerprint": "fp_ollama"}, CERTAIN, POSSIBLE),
        (PLAIN | {"system_fingerprint": "vllm-0.33.0-tp2-1a2b3c4d"}, POSSIBLE, CERTAIN),
        (PLAIN | {"system_fingerprint": None}, POSSIBLE, POSSIBLE),
        (PLAIN | {"kv_transfer_params": None}, POSSIBLE, CERTAIN),
        (PLAIN | {"prompt_logprobs": None}, POSSIBLE, CERTAIN),
        (CHUNK | {"prompt_token_ids": None}, POSSIBLE, CERTAIN),
        ({"choices": [{"text": "Hi", "stop_reason": None}]}, POSSIBLE, CERTAIN),
        ({"choices": [{"text": "Hi", "token_ids": None}]}, POSSIBLE, CERTAIN),
        ({"choices": [None, {"text": "Hi", "prompt_logprobs": None}]}, POSSIBLE, CERTAIN),
        ({"choices": ["x"]}, POSSIBLE, POSSIBLE),
        ({"choices": {}}, NO, NO),
        ({"kv_transfer_params": None}, NO, NO),
        ({}, NO, NO),
        ([], NO, NO),
        ("x", NO, NO),
        (None, NO, NO),
    ],
)
def test_what_the_shipped_providers_recognize(event: Any, ollama: Recognition, vllm: Recognition) -> None:
    """CERTAIN by a mark that only this server sets, POSSIBLE where the dialect fits."""
    assert registry.mapper("ollama").recognizes(event) is ollama
    assert registry.mapper("vllm").recognizes(event) is vllm


class Sure(Echo):
    """Recognizes the given events, as surely as it is set to."""

    def __init__(self, how: Any, key: str = "text") -> None:
        self.how, self.key = how, key

    @hookimpl
    def recognizes(self, event: Any) -> Any:
        """Look at a key. Fail on other values than objects."""
        return self.how if self.key in event.keys() else None


@pytest.mark.parametrize(
    ("plugins", "found"),
    [
        ({"a": Sure(CERTAIN), "b": Sure(POSSIBLE)}, "a"),
        ({"a": Sure(POSSIBLE), "b": Sure(CERTAIN)}, "b"),
        ({"a": Sure(POSSIBLE), "b": Echo()}, "a"),
        ({"a": Sure(POSSIBLE), "b": Sure(CERTAIN, "other")}, "a"),
        ({"a": Sure(True), "b": Sure(NO)}, "a"),
        ({"a": Sure(2), "b": Sure(1)}, "a"),
        ({"a": Sure(POSSIBLE), "b": Sure("surely")}, "a"),
        ({"a": Sure(POSSIBLE), "b": Sure(7)}, "a"),
    ],
)
def test_the_best_recognition_wins(plugins: dict[str, Any], found: str) -> None:
    """A provider with a hook that fails, or answers with another value than a recognition, does not recognize."""
    known = registry_of(**plugins)
    assert detect([{"text": "a"}], known) == found
    assert normalize(b'{"text":"a"}', registry=known).metadata.provider_id == found


class Asked(Sure):
    """Counts how often it is asked."""

    times = 0

    @hookimpl
    def recognizes(self, event: Any) -> Any:
        """As it is set to."""
        self.times += 1
        return self.how


@pytest.mark.parametrize("how", [CERTAIN, POSSIBLE, NO, 7])
def test_each_provider_is_asked_once(how: Any) -> None:
    """With and without a certain provider. Also one that answers with another value than a recognition."""
    asked = Asked(how)
    with suppress(DetectionError, PluginError):
        detect([{"text": "a"}], registry_of(a=asked, b=Echo()))
    assert asked.times == 1


def test_of_several_faults_the_first_provider_is_blamed() -> None:
    """Whichever of them was asked first, for the signs that its entry point names."""
    known = registry_of(bb=Asked("surely"), aa=Asked("surely"))
    with pytest.raises(PluginError) as caught:
        detect([{"text": "a"}], known, guess=False)
    assert caught.value.plugin == "aa"


def test_who_may_be_asked_changes_with_the_registry() -> None:
    """Facts that were found about its names and signs hold until then."""
    known = registry_of(a=Sure(POSSIBLE))
    assert detect([{"text": "a"}], known) == "a"
    better = Sure(CERTAIN)
    known.register(better, "b")
    assert detect([{"text": "a"}], known) == "b"
    known.block("b")
    assert detect([{"text": "a"}], known) == "a"
    known.unblock("b")
    assert detect([{"text": "a"}], known) == "b"
    known.unregister(better, "b")
    assert detect([{"text": "a"}], known) == "a"


def test_an_ambiguity_lists_the_candidates() -> None:
    """If several recognize a payload equally well, the caller has to choose among them."""
    known = registry_of(b=Sure(POSSIBLE), a=Sure(POSSIBLE), c=Sure(NO))
    with pytest.raises(DetectionError, match="speak this dialect; name one of: a, b$") as caught:
        detect([{"text": "a"}], known, guess=False)
    assert caught.value.candidates == ("a", "b")
    with pytest.raises(DetectionError, match="several providers speak this dialect") as caught:
        normalize(PLAIN | {"citations": ["https://a.example"]})  # Perplexity and xAI read them as citations
    assert {"ollama", "openai", "vllm"} <= set(caught.value.candidates)
    assert not {"anthropic", "gemini"} & set(caught.value.candidates)


class Original(Sure):
    """One with a dialect that others took over."""

    @hookimpl
    def provider_info(self) -> Any:
        """Say so."""
        return ProviderInfo(title="Original", is_original=True)


class Other(Sure):
    """Reads the same text otherwise."""

    @hookimpl
    def extensions(self, event: Any, state: MappingState) -> Any:
        """Keep the fields that no other keeps."""
        return {"other": True}


class Refusing(Sure):
    """Recognizes what it cannot read."""

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Any:
        """Refuse it."""
        raise UnknownEventError("an event that I do not know")


@pytest.mark.parametrize(
    ("plugins", "found"),
    [
        ({"b": Sure(POSSIBLE), "a": Sure(POSSIBLE), "c": Other(NO)}, "a"),
        ({"a": Sure(POSSIBLE), "b": Original(POSSIBLE), "c": Original(POSSIBLE)}, "b"),
        ({"a": Sure(CERTAIN), "b": Original(CERTAIN, "other"), "c": Sure(CERTAIN)}, "a"),
        ({"a": Sure(POSSIBLE), "b": Other(POSSIBLE)}, None),
        ({"a": Refusing(POSSIBLE), "b": Sure(POSSIBLE)}, None),
        ({"a": Refusing(POSSIBLE), "b": Refusing(POSSIBLE)}, None),
    ],
)
def test_what_several_read_alike_is_read(plugins: Any, found: str | None) -> None:
    """Under the id of the dialect's own provider, else of the first. Also if id and time are made up."""
    known = registry_of(**plugins)
    if found is None:
        with pytest.raises(DetectionError, match="several providers speak this dialect"):
            normalize(b'{"text":"a"}', registry=known)
        return
    response = normalize(b'{"text":"a"}', registry=known, status=200)
    assert response.metadata.provider_id == found
    assert response.metadata.provenance["metadata.provider_id"] == "derived"
    assert response.metadata.provenance["id"] == "synthetic"
    assert response.text == "a"


@pytest.mark.parametrize(
    ("payload", "found"),
    [
        (PLAIN, "openai"),
        (
            {**PLAIN, "choices": [{**PLAIN["choices"][0], "message": {"content": "Hi", "annotations": []}}]},
            "openai",
        ),
        (
            {"id": "r", "object": "response", "status": "completed", "model": "m", "output": []},
            "openai_responses",
        ),
    ],
)
def test_the_commonest_answers_need_no_provider(payload: Any, found: str) -> None:
    """The words of OpenAI and of all who copy it."""
    response = normalize(payload)
    assert response.metadata.provider_id == found
    assert response.metadata.provenance["metadata.provider_id"] == "derived"
    assert response.same_content(normalize(payload, found)) is False  # but for this word
    known = normalize(payload, found).metadata.provenance
    assert {**known, "metadata.provider_id": "derived"} == response.metadata.provenance


@pytest.mark.parametrize("data", [b"x", b"[1]", b'{"other":1}', b"data: [DONE]\n\n", b'{"text":'])
def test_what_nobody_recognizes(data: bytes) -> None:
    """Without a provider there is no guess."""
    with pytest.raises(DetectionError, match="no provider recognizes this payload; name one of") as caught:
        normalize(data, registry=registry_of(a=Sure(CERTAIN)))
    assert caught.value.candidates == ()


def test_canonical_json_is_no_answer_of_a_server() -> None:
    with pytest.raises(DetectionError, match="canonical JSON, not a server's answer; read it with from_json"):
        normalize(to_json(ChatResponse.success(ChatMessage.assistant("Hi"), UsageInfo(1, 1), "m")))


def test_every_provider_is_asked_about_every_event() -> None:
    """A stream may tell its origin late: the best of its first fifty events counts, and no more are looked at."""
    known = registry_of(a=Sure(POSSIBLE), b=Sure(CERTAIN, "mark"))
    texts = [{"text": "a"}]
    assert detect([*texts * 49, {"mark": 1}], known) == "b"
    assert detect([*texts * 50, {"mark": 1}], known) == "a"
    assert candidates([*texts, {"mark": 1}], known) == {"a": POSSIBLE, "b": CERTAIN}
    assert candidates(iter([]), known) == {}


def test_a_broken_plugin_is_passed_over() -> None:
    """One that cannot be imported recognizes nothing. One that is blocked is not asked."""
    broken = EntryPoint("broken", "no_such_module", ENTRY_POINT_GROUP)
    known = Registry(installed=[broken], environ={})
    known.register(Sure(POSSIBLE), "a")
    known.register(Sure(CERTAIN), "b")
    known.block("b")
    assert detect([{"text": "a"}], known) == "a"


def test_why_no_more_events_can_be_decoded() -> None:
    assert fault_of(b'{"a": 1}\n{"b": 2}\n', Limits()) is None
    assert str(fault_of(b'{"a": 1}\n{"b": 2', Limits())).startswith("not JSON at byte ")


def test_who_cannot_be_used_is_told_apart() -> None:
    broken = EntryPoint("broken", "no_such_module", ENTRY_POINT_GROUP)
    known = Registry(installed=[broken], environ={})
    known.register(Sure(NO), "c")
    with pytest.raises(DetectionError, match=r"name one of: c \(broken: broken\)$") as caught:
        detect([{"text": "a"}], known, guess=False)
    assert (caught.value.known, caught.value.broken) == (("c",), ("broken",))
    known.block("broken")
    with pytest.raises(DetectionError, match=r"name one of: c$"):
        detect([{"text": "a"}], known, guess=False)


def test_a_plugin_is_imported_where_its_entry_point_names_a_key_or_nobody_is_certain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its signs save an import, and never change which provider is found."""
    monkeypatch.syspath_prepend(tmp_path)
    code = (
        "from wires import Echo; from crosswalk import hookimpl; from crosswalk.plugins import Recognition\n"
    )
    code += "class Sign(Echo):\n @hookimpl\n def recognizes(self, event): return Recognition('KEY' in event and HOW)\n"
    points = []
    for name, how, signs in (
        ("one", 2, "[a, b]"),
        ("two", 2, "[c.d, c.t]"),
        ("none", 1, "[]"),
        ("silent", 0, ""),
    ):
        module = f"detected_{name}"
        code_of = code.replace("KEY", name[0]).replace("HOW", str(how))
        (tmp_path / f"{module}.py").write_text(code_of + "plugin = Sign()\n")
        points.append(EntryPoint(name, f"{module}:plugin {signs}".strip(), ENTRY_POINT_GROUP))

    def imported_for(*events: Any) -> tuple[str | None, set[str]]:
        for name in [name for name in sys.modules if name.startswith("detected_")]:
            del sys.modules[name]
        try:
            found = detect(events, Registry(installed=points, environ={}), guess=False)
        except DetectionError:
            found = None
        return found, {name[9:] for name in sys.modules if name.startswith("detected_")}

    everybody = {"one", "two", "none", "silent"}
    assert imported_for({"x": 1}, {"a": 1, "o": 1}) == ("one", {"one", "silent"})
    assert imported_for({"c": 1, "t": 1}) == ("two", {"two", "silent"})
    assert imported_for({"c": 1, "e": 1, "n": 1}) == ("none", everybody)  # half a sign is none
    assert imported_for({"c": 1, "t": 1, "b": 1, "o": 1}) == (None, {"one", "two", "silent"})
    assert imported_for({"a": 1}) == (None, everybody)  # a sign of one that is not certain
    assert imported_for({"o": 1}) == ("one", everybody)  # certain, although it bears no sign
    assert imported_for({"n": 1}) == ("none", everybody)
    assert imported_for({"a": 1, "o": 1}, ["z"]) == ("one", everybody)
    assert imported_for() == (None, everybody)
    known = Registry(installed=points, environ={})
    assert known.signs().get("one") == ({"a"}, {"b"})
    assert known.signs().get("none") == ()
    assert known.signs().get("silent") is known.signs().get("nobody") is None
    assert known.providers()[1].target == "detected_one:plugin"
    known.register(Sure(CERTAIN), "one")
    assert known.signs().get("one") is None  # what was put over it may be certain of more


@pytest.mark.parametrize(
    ("data", "provider"),
    [
        (ndjson(line("a"), line(done="stop")), "ollama"),
        (ndjson(line("a"), b"{cut"), None),
        (sse(CHUNK | {"prompt_token_ids": None}, chunk({}, "stop")), "vllm"),
        (
            sse(
                CHUNK, {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "stop_reason": None}]}
            ),
            "vllm",
        ),
        (sse(body({"content": "a"}, system_fingerprint="fp_ollama")), "ollama"),
    ],
)
def test_a_recorded_stream_is_recognized(data: bytes, provider: str | None) -> None:
    """Detection goes through framing. A fault further on is for reading to report."""
    if provider is None:
        with pytest.raises(Exception, match="ollama, event 2"):
            normalize(data)
    else:
        assert normalize(data).metadata.provider_id == provider


@pytest.mark.parametrize(
    ("event", "word"),
    [
        ({"type": "response.created"}, "response.created"),
        ({"object": "list", "type": 7}, "list"),
        ({"event_type": "text"}, "text"),
        ({"type": "x" * 100}, "x" * 60),
        ({}, None),
        ([], None),
        (None, None),
    ],
)
def test_what_an_event_calls_itself(event: Any, word: str | None) -> None:
    """Its type, however the API names that field. Never more than a line of it."""
    assert event_type(event) == word


class Marked(OpenAIChatDialect):
    """OpenAI's dialect with a mark."""

    def recognizes(self, event: Any) -> Recognition:
        """By the mark."""
        return CERTAIN if "mark" in event else super().recognizes(event)


def test_the_first_event_decides_the_dialect() -> None:
    """The one that recognizes it best reads the whole stream, and the first of equal ones."""
    first, second = OpenAIChatDialect(), Marked()
    family = DialectFamily(first, second)
    assert family.dialect(CHUNK, MappingState("test")) is first
    state = MappingState("test")
    assert family.dialect(CHUNK | {"mark": 1}, state) is second
    assert family.dialect(CHUNK, state) is second
    assert family.recognizes({"mark": 1}) is CERTAIN
    assert family.recognizes({}) is NO


class Pinged(DialectFamily):
    """A family whose streams may begin with a ping, in either dialect."""

    undecided = ("ping",)


@pytest.mark.parametrize("pings", [0, 1, 2])
def test_an_undecided_event_leaves_the_choice_to_the_next(pings: int) -> None:
    """The first dialect reads it, and the second one may read the rest."""
    first, second = OpenAIChatDialect(), Marked()
    family, state = Pinged(first, second), MappingState("test")
    assert [family.dialect({"type": "ping"}, state) for _ in range(pings)] == [first] * pings
    assert family.dialect(CHUNK | {"mark": 1}, state) is second
    assert family.dialect({"type": "ping"}, state) is second


@pytest.mark.parametrize("event", [{"type": ["ping"]}, {"type": "pong"}, ["ping"], "ping"])
def test_any_other_first_event_decides_or_is_unknown(event: Any) -> None:
    """Only the types that the family names leave it open."""
    with pytest.raises(UnknownEventError, match="unknown dialect"):
        Pinged(OpenAIChatDialect()).dialect(event, MappingState("test"))


@pytest.mark.parametrize(
    ("event", "word", "cause"),
    [({"type": "message_start"}, "message_start", "message_start"), ([], None, "no type")],
)
def test_an_unknown_dialect_is_an_unknown_event(event: Any, word: str | None, cause: str) -> None:
    """An event that no member of a family recognizes is named."""
    with pytest.raises(UnknownEventError, match=f"unknown dialect .{cause}") as caught:
        DialectFamily(OpenAIChatDialect()).dialect(event, MappingState("test"))
    assert caught.value.event_type == word


def test_before_the_first_event_the_first_dialect_speaks() -> None:
    """A finish word can be asked for before any event, as a table of words would."""
    mapper = registry.mapper("ollama")
    assert mapper.map_finish_reason("length", mapper.new_state()) == "length"


def test_bytes_are_detected_as_their_events_are() -> None:
    known = line("Hi")
    assert detect(ndjson(known), registry) == detect([known], registry) == "ollama"
    with pytest.raises(DetectionError):
        detect(b"no JSON", registry)


def test_of_some_providers_the_best_is_found_whoever_else_fits_better() -> None:
    installed = registry_of(a=Sure(CERTAIN), b=Sure(POSSIBLE), c=Sure(NO))
    event = {"text": "Hi"}
    assert detect([event], installed) == "a"
    assert detect([event], installed, among=["b", "c"]) == "b"
    with pytest.raises(DetectionError, match="no provider"):
        detect([event], installed, among=["c"])


ANSWERS: dict[str, Any] = {
    "a completion": {"id": "c", "object": "chat.completion", "choices": [{"index": 0, "message": {"content": "Hi"}, "finish_reason": "stop"}]},
    "a chunk": {"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "Hi"}}]},
    "a message": {"id": "m", "type": "message", "role": "assistant", "content": [{"type": "text", "text": "Hi"}]},
    "a response": {"id": "r", "object": "response", "status": "completed", "output": []},
    "a completion as text": '{"object":"chat.completion","choices":[]}',
}  # fmt: skip


@pytest.mark.parametrize("key", ["output", "response"])
@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_an_envelope_around_an_answer_is_not_another_vendors(answer: Any, key: str) -> None:
    with pytest.raises(DetectionError, match=f"there is an answer under '{key}', in the envelope of a log"):
        normalize(orjson.dumps({key: answer}))
    with pytest.raises(DetectionError):
        normalize(orjson.dumps({key: answer, "usage": {}, "request_id": "r"}))


@pytest.mark.untraced
@pytest.mark.parametrize("key", ["response", "output", "body", "result", "answer"])
@pytest.mark.parametrize(
    "beside", [{}, {"request": {"model": "m", "messages": []}}], ids=["alone", "beside a request"]
)
def test_an_envelope_around_any_capture_is_named(key: str, beside: dict[str, Any]) -> None:
    for path in sorted(CAPTURES.rglob("*.response.json")):
        body = orjson.loads(path.read_bytes())
        found = candidates(body if type(body) is list else [body], registry)
        if not found:
            continue  # an error that bears no mark of anybody
        is_named = CERTAIN in found.values() or "model" in body or key in ("response", "output")
        named = f"there is an answer under {key!r}, in the envelope of a log"
        for value in (body, orjson.dumps(body).decode()):
            with pytest.raises(DetectionError, match=named if is_named else "no provider recognizes"):
                detect(orjson.dumps({key: value, **beside}), registry)


@pytest.mark.parametrize(
    "event",
    [
        {"response": {"candidates": [{"content": {"parts": [{"text": "Hi"}]}, "finishReason": "STOP"}]}},
        {"response": [{"candidates": [{"content": {"parts": [{"text": "Hi"}]}, "finishReason": "STOP"}]}]},
        {"output": {"model": "m", "message": {"role": "assistant", "content": "Hi"}, "done": True}},
        {"response": '{"model":"m","message":{"role":"assistant","content":"Hi"},"done":true}'},
        {"output": {"id": "c", "created": 1, "model": "m", "choices": [{"message": {"content": "Hi"}}]}},
        {"response": {"response": {"candidates": []}}},
        {"body": {"error": {"message": "no", "type": "e"}}, "model": "m", "response": {"error": {"message": "no"}}},
    ],
)  # fmt: skip
def test_an_answer_without_a_mark_of_its_api_is_seen_in_an_envelope(event: Any) -> None:
    with pytest.raises(DetectionError, match="there is an answer under '(response|output)', in the envelope"):
        normalize(orjson.dumps(event))


@pytest.mark.parametrize(
    "event", [{"body": {"a": 1}}, {"body": "{no JSON}"}, {"body": [{"type": "message"}]}, [1]]
)
def test_an_object_without_an_answer_is_no_envelope(event: Any) -> None:
    with pytest.raises(DetectionError, match="no provider recognizes this payload; name one of"):
        normalize(orjson.dumps(event))


@pytest.mark.parametrize(
    ("event", "found"),
    [
        (
            {"output": {"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]}, "usage": {}},
            "dashscope",
        ),
        ({"output": {"text": "{}", "finish_reason": "stop"}, "request_id": "r", "more": 1}, "dashscope"),
        ({"response": {"type": "message"}}, "cloudflare"),  # an answer in JSON mode
        ({"response": {"object": ["chat.completion"]}}, "cloudflare"),
        ({"response": "{not JSON}"}, "cloudflare"),
        ({"response": "{}"}, "cloudflare"),
        ({"response": {"country": "India"}}, "cloudflare"),
        ({"response": [1]}, "cloudflare"),
        ({"response": '{"message":"Hi","done":true}', "usage": {}}, "cloudflare"),  # a text of the model
        ({"response": '{"message":"Hi","done":true}', "done": True}, "ollama"),
        ({"output": {"text": "Hi", "finish_reason": "stop"}}, "dashscope"),
        ({"type": "response.completed", "response": ANSWERS["a response"]}, "openai_responses"),
    ],
)
def test_an_answer_with_such_a_key_is_still_its_vendors(event: Any, found: str) -> None:
    assert found in candidates([event], registry)


def test_a_span_around_choices_is_no_answer_of_dashscope() -> None:
    span = {
        "name": "chat",
        "output": {"choices": [{"message": {"content": "Hi"}}]},
        "usage": {"prompt_tokens": 3},
    }
    assert candidates([span], registry) == {}
