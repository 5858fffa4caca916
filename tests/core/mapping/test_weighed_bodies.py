"""Bodies with log probabilities, another number of tokens in each: read by their likeness as in the general way."""

from __future__ import annotations

from typing import Any

import attrs
import orjson
import pytest
from hypothesis import example, given, strategies as st

from crosswalk import CrosswalkError, normalize, to_json
from crosswalk.mapping.bodies import shape_of
from crosswalk.mapping.reader import Reader, ReaderOptions, drain
from crosswalk.plugin.mapper import Mapper
from crosswalk.plugin.registry import registry
from crosswalk.plugins import OpenAIChatDialect, TokenLogprob, leave_mistyped
from wires import CLOCK, line, registry_of

VLLM, OLLAMA = registry.mapper("vllm"), registry.mapper("ollama")


def entry(token: str, logprob: Any = -0.5, **more: Any) -> dict[str, Any]:
    return {"token": token, "logprob": logprob, "bytes": [*token.encode()], **more}


def entries(text: str) -> list[dict[str, Any]]:
    """A token for each letter, with what else was likely."""
    return [entry(letter, top_logprobs=[entry(letter), entry("é", -2.25)]) for letter in text]


def chat(text: str, logprobs: Any) -> dict[str, Any]:
    """A body of Chat Completions."""
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text},
        "logprobs": logprobs,
        "finish_reason": "stop",
    }
    counts = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    return {
        "id": f"c-{text}",
        "object": "chat.completion",
        "created": 5,
        "model": "m",
        "choices": [choice],
        "usage": counts,
    }


def completion(text: str) -> dict[str, Any]:
    """A body of Completions, whose lists are parallel."""
    tokens = list(text)
    lists = {
        "tokens": tokens,
        "token_logprobs": [None, *[-0.5] * (len(tokens) - 1)],
        "top_logprobs": [{one: -0.5} for one in tokens],
    }
    choice = {"index": 0, "text": text, "logprobs": lists, "finish_reason": "stop"}
    return {"id": f"c-{text}", "object": "text_completion", "created": 5, "model": "m", "choices": [choice]}


def gemini(text: str) -> dict[str, Any]:
    """A body of Gemini's: what is likeliest stands in a list of its own."""
    chosen = [{"token": letter, "tokenId": 5, "logProbability": -0.5} for letter in "pq"]
    result = {"chosenCandidates": chosen, "topCandidates": [{"candidates": [one]} for one in chosen]}
    said = {
        "content": {"parts": [{"text": text}], "role": "model"},
        "finishReason": "STOP",
        "logprobsResult": result,
    }
    return {
        "candidates": [said],
        "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 4, "totalTokenCount": 7},
        "responseId": "r",
    }


def ollama(text: str, logprobs: Any) -> dict[str, Any]:
    """A body of Ollama's: the log probabilities are a list at the top."""
    return line(text, done="stop", logprobs=logprobs, eval_count=4, prompt_eval_count=3)


def in_general(mapper: Mapper, data: bytes) -> Any:
    """The response to *data* in the general way, with its bytes; or the error."""
    reader = Reader(
        attrs.evolve(mapper, is_plain=False), ReaderOptions(id_factory=lambda: "made", clock=CLOCK)
    )
    try:
        drain(reader.read_whole(data))
        drain(reader.finish())
        return to_json(reader.response(), include_raw=True)
    except CrosswalkError as error:
        return type(error).__name__


def by_likeness(mapper: Mapper, like: Any, data: bytes) -> Any:
    """The response to *data* by the shape of *like*; ``None`` where it does not fit."""
    shape = shape_of(mapper, like if type(like) is bytes else orjson.dumps(like))
    assert shape is not None
    try:
        response = shape(data, lambda: "made", CLOCK, True)
    except Exception:  # for the general way to judge
        return None
    return None if response is None else to_json(response, include_raw=True)


@pytest.mark.parametrize(
    ("mapper", "like", "others"),
    [
        (
            VLLM,
            chat("ab", {"content": entries("ab")}),
            [chat(text, {"content": entries(text)}) for text in ("Ä", "long" * 99)],
        ),
        (
            VLLM,
            chat("ab", {"content": entries("ab"), "refusal": None}),
            [chat("c", {"content": [entry("c", top_logprobs=[])], "refusal": None})],
        ),
        (VLLM, completion("ab"), [completion("abc"), completion("long" * 99)]),
        (OLLAMA, ollama("ab", entries("ab")), [ollama("abc", entries("abc")), ollama('"\\', [entry('"\\')])]),
        (OLLAMA, ollama("ab", entries("ab" * 99)), [ollama("abc", entries("abc"))]),
    ],
    ids=["chat", "chat, with a null", "completions", "Ollama", "learnt from a long one"],
)
def test_other_tokens_are_read_by_their_likeness(mapper: Mapper, like: Any, others: list[Any]) -> None:
    for other in others:
        data = orjson.dumps(other)
        assert by_likeness(mapper, like, data) == in_general(mapper, data)


@pytest.mark.parametrize(
    "like",
    [chat("ab", {"content": None, "refusal": None}), chat("ab", {}), gemini("ab")],
    ids=["null", "nothing", "more in an entry"],
)
def test_what_no_hook_takes_all_of_is_the_same_in_all(like: Any) -> None:
    """And other texts are read by their likeness still."""
    mapper = registry.mapper("gemini" if "candidates" in like else "vllm")
    data = orjson.dumps(like).replace(b'"ab"', b'"xyz"')
    assert by_likeness(mapper, like, data) == in_general(mapper, data)
    other = data.replace(b"-0.5", b"-0.7").replace(b'"refusal":null', b'"refusal":5')
    assert by_likeness(mapper, like, other) in (None, in_general(mapper, other))


def test_a_log_of_such_bodies_is_parsed_until_its_like_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    read = list[bytes]()
    read_whole = Reader.read_whole
    monkeypatch.setattr(
        Reader, "read_whole", lambda self, data: (read.append(data), read_whole(self, data))[1]
    )
    fresh = registry_of(chat=OpenAIChatDialect())
    bodies = [orjson.dumps(chat("x" * n, {"content": entries("x" * n)})) for n in range(1, 30)]
    tokens = [len(normalize(data, "chat", registry=fresh).logprobs or ()) for data in bodies]
    assert tokens == [*range(1, 30)]
    assert not {*bodies[3:]} & {*read}


ODD: dict[str, Any] = {
    "no list": {"content": "x"},
    "null": {"content": None},
    "empty": {"content": []},
    "nothing": {},
    "more beside": {"content": entries("a"), "more": 1},
    "an object beside": {"content": entries("a"), "refusal": {}},
    "a list beside": {"content": entries("a"), "refusal": []},
    "tokens that refuse": {"content": entries("a"), "refusal": entries("b")},
    "more in an entry": {"content": [entry("a", more=1)]},
    "an empty object in an entry": {"content": [entry("a", more={})]},
    "a number for a token": {"content": [{"token": 5, "logprob": -1.0}]},
    "an integer for a number": {"content": [entry("a", -1)]},
    "no number": {"content": [entry("a", None)]},
    "a text for a number": {"content": [entry("a", "-1")]},
    "no byte": {"content": [entry("a", top_logprobs=[]) | {"bytes": [256]}]},
    "a flag for a byte": {"content": [entry("a") | {"bytes": [True]}]},
    "tokens in tokens in tokens": {
        "content": [entry("a", top_logprobs=[entry("b", top_logprobs=[entry("c")])])]
    },
    "both forms": {"content": entries("a"), "tokens": ["a"], "token_logprobs": [-1.0]},
    "a list": [1],
    "a list of lists": [[]],
}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_what_is_odd_is_read_as_in_general(odd: Any) -> None:
    """By its likeness, or not at all."""
    like, data = chat("ab", {"content": entries("ab")}), orjson.dumps(chat("xy", odd))
    assert by_likeness(VLLM, like, data) in (None, in_general(VLLM, data))
    like, data = ollama("ab", entries("ab")), orjson.dumps(ollama("xy", odd))
    assert by_likeness(OLLAMA, like, data) in (None, in_general(OLLAMA, data))


@pytest.mark.parametrize(
    "written",
    [
        b'{"content":[{"token":"a","logprob":-1e400}]}',
        b'{"content":[{"token":"a","logprob":-12345678901234567890123}]}',
        b'{"content":[{"token":"a","logprob":-1.0,"logprob":-2.0}]}',
        b'{"content":[{"token":"a","logprob":-1.0}],"content":[]}',
        b'{"content":[{"token":"\\ud83d","logprob":-1.0}]}',
        b'{"content":[{"token":"\xff","logprob":-1.0}]}',
        b'{ "content" : [ {"token":"a","logprob":-1.0} ] }',
        b'{"content":[{"token":"},\\"finish_reason\\":\\"stop\\"","logprob":-1.0}]}',
        b'{"content":[{"token":"a","logprob":-1.0}]},"finish_reason":"stop"',
        b'{"content":[{"token":"a","logprob":-1.0}]},"logprobs":{"content":[]}',
        b'{"content":' + b'[{"token":"a","logprob":-1.0,"top_logprobs":' * 300 + b"[]" + b"}]" * 300 + b"}",
    ],
)
def test_however_it_is_written(written: bytes) -> None:
    like = chat("ab", {"content": entries("ab")})
    data = orjson.dumps(chat("xy", "LOGPROBS")).replace(b'"LOGPROBS"', written)
    assert by_likeness(VLLM, like, data) in (None, in_general(VLLM, data))


@pytest.mark.parametrize(
    "tops", [[], [None], ["junk"], [{"candidates": [{"token": "p", "logProbability": -0.5}]}, "junk"], {}]
)
def test_what_a_reader_notes_is_noted(tops: Any) -> None:
    """Gemini's likeliest tokens stand in a list of their own, beside which anything may stand."""
    plain = orjson.dumps(gemini("ab")).replace(b'"tokenId":5,', b"")
    other = orjson.loads(plain)
    other["candidates"][0]["logprobsResult"]["topCandidates"] = tops
    data, mapper = orjson.dumps(other), registry.mapper("gemini")
    assert by_likeness(mapper, plain, data) in (None, in_general(mapper, data))


@pytest.mark.parametrize(
    ("left", "other"),
    [({"x": 1, "y": None}, {"y": None, "x": 1}), ({"x": 0.0}, {"x": -0.0}), ({"x": 1}, {"x": True})],
)
def test_what_is_left_is_the_same_to_the_byte(left: Any, other: Any) -> None:
    like = chat("ab", {"content": entries("ab"), **left})
    data = orjson.dumps(chat("xy", {"content": entries("xy"), **other}))
    assert by_likeness(VLLM, like, data) in (None, in_general(VLLM, data))
    same = orjson.dumps(chat("xy", {"content": entries("xy"), **left}))
    assert by_likeness(VLLM, like, same) == in_general(VLLM, same)


def test_a_reader_is_given_no_other_choices_text() -> None:
    """The first choice may be numbered as the second: then its log probabilities are not the main answer's."""

    def two(first: str, second: str) -> bytes:
        body = chat(first, {"content": entries("ab")})
        (choice,) = body["choices"]
        choice["index"] = 1
        body["choices"].append({"index": 0, "message": {"content": second}, "finish_reason": "stop"})
        return orjson.dumps(body)

    assert shape_of(VLLM, two("ab", "cd")) is None


values = st.recursive(
    st.sampled_from([None, True, 0, 1, -1, 1.5, "a", "", "crosswalk-mark-3-"]) | st.text(max_size=2),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["token", "logprob", "bytes", "top_logprobs", "content", "x"]), inner, max_size=4
        )
    ),
    max_leaves=9,
)
near = st.lists(
    st.fixed_dictionaries(
        {"token": st.text(max_size=2), "logprob": st.floats(-9, 0) | values},
        optional={"bytes": values, "top_logprobs": values},
    )
)


@given(
    values | near | st.fixed_dictionaries({"content": near}, optional={"refusal": values}),
    st.text(max_size=5),
)
@example([entry("a")], "ab")
def test_whatever_it_is(logprobs: Any, text: str) -> None:
    for mapper, like, other in (
        (VLLM, LIKE_CHAT, chat(text, logprobs)),
        (OLLAMA, LIKE_OLLAMA, ollama(text, logprobs)),
    ):
        data = orjson.dumps(other)
        assert by_likeness(mapper, like, data) in (None, in_general(mapper, data))


LIKE_CHAT = orjson.dumps(chat("ab", {"content": entries("ab")}))
LIKE_OLLAMA = orjson.dumps(ollama("ab", entries("ab")))


class Choosy(OpenAIChatDialect):
    """Reads log probabilities by the text that they come with, or fails."""

    leaves_hold = True

    def logprobs(self, choice: dict[str, Any], content: str | None) -> tuple[TokenLogprob, ...] | None:
        """None of a text that is long, and an error of a longer one."""
        if content and len(content) > 40:
            raise ValueError
        if content and len(content) > 30:
            choice["logprobs"] = {"kept": content}
            return None
        return super().logprobs(choice, content)


@pytest.mark.parametrize("length", [1, 31, 41])
def test_the_reader_is_given_the_text(length: int) -> None:
    choosy = registry_of(choosy=Choosy()).mapper("choosy")
    data = orjson.dumps(chat("x" * length, {"content": entries("x" * length)}))
    shape = shape_of(choosy, LIKE_CHAT)
    if shape is not None:
        assert by_likeness(choosy, LIKE_CHAT, data) in (None, in_general(choosy, data))


class Noting(OpenAIChatDialect):
    """Notes of log probabilities that are no list that they are none, and leaves nothing of them."""

    leaves_hold = True

    def logprobs(self, choice: dict[str, Any], content: str | None) -> tuple[TokenLogprob, ...] | None:
        """As they are, but for that."""
        if "odd" in (choice.get("logprobs") or {}):
            leave_mistyped(choice["logprobs"], "odd")
            del choice["logprobs"]["odd"]
        return super().logprobs(choice, content)


def test_what_is_noted_of_what_is_not_left_is_noted() -> None:
    noting = registry_of(noting=Noting()).mapper("noting")
    data = orjson.dumps(chat("xy", {"content": entries("xy"), "odd": 1}))
    assert by_likeness(noting, LIKE_CHAT, data) in (None, in_general(noting, data))


def test_long_ones_that_stand_twice_are_not_shortened() -> None:
    """Which of them the plugin reads, nobody can tell by their place."""
    like = chat("qr", {"content": entries("ab" * 10)})
    like["beside"] = {"logprobs": like["choices"][0]["logprobs"]}
    for text in ("xyz", "b"):
        data = orjson.dumps(like).replace(b'"qr"', orjson.dumps(text))
        assert by_likeness(VLLM, like, data) in (None, in_general(VLLM, data))


def test_nothing_is_learnt_where_nothing_is_promised() -> None:
    assert shape_of(attrs.evolve(VLLM, is_plain=False), LIKE_CHAT) is None
