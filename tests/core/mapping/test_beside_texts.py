"""Counts, numbers, log probabilities and stamps beside the text of an event: read by their likeness as if parsed."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest
from hypothesis import given, strategies as st

from alike import (
    FULL,
    TOKENS,
    VLLM,
    Full,
    call,
    full,
    made,
    same_as_parsed,
    stamps,
    texts,
)
from crosswalk import (
    CrosswalkError,
    Limits,
    ResponseDelta,
    TokenLogprob,
    UsageInfo,
    registry,
)
from crosswalk.mapping.reader import Reader, ReaderOptions
from crosswalk.plugin.hookspecs import hookimpl
from crosswalk.plugin.take import NOTED
from crosswalk.plugins import (
    MappingState,
    ProviderInfo,
    accept_string,
)
from crosswalk.types.json import dump_json
from wires import chunk, registry_of, sse, usage

counts = st.integers(-1, 9) | st.sampled_from([None, "1", "7", "8", "9", 2.0, 10**20, {}, []])


tokens = (
    st.just(None)
    | st.just(TOKENS)
    | st.sampled_from(
        [
            [],
            [{"token": "b"}],
            [{"token": 1}],
            {"token": "c"},
            "odd",
            [{**TOKENS[0], "more": 1}],
            [{**TOKENS[0], "bytes": [True]}],
        ]
    )
)


@given(
    st.lists(
        st.tuples(
            texts,
            counts,
            tokens,
            stamps | st.just("now"),
            st.sampled_from(["text", "thought"]),
        ),
        max_size=8,
    ),
    st.booleans(),
)
def test_all_that_may_change_at_once_is_read_as_if_parsed(
    events: list[tuple[str, Any, Any, str, str]], has_numbers: bool
) -> None:
    start = [full("Hello", tokens=TOKENS), full("you", tokens=TOKENS)]
    said = start + [full(text, out, found, key, at=at) for text, out, found, at, key in events]
    numbered = [{"n": n, **event} if has_numbers else event for n, event in enumerate(said, start=1)]
    same_as_parsed([dump_json(event) + b"\n" for event in numbered], FULL)


@pytest.mark.parametrize("count", ["7", "8", "9"])
def test_what_a_hook_does_not_like_among_the_counts_is_an_error_all_the_same(count: str) -> None:
    frames = [dump_json(full(f"t{n}", out)) + b"\n" for n, out in enumerate([1, 2, 3, count, 5])]
    assert same_as_parsed(frames, FULL)[2] is not None


@pytest.mark.parametrize(
    "event",
    [{"n": 5, **full("Hello")}, full("Hello") | {"pad": "x" * 70_000}],
    ids=["a number that does not follow", "a long event"],
)
def test_nothing_is_learnt_from_what_says_more_than_it_may(parsed: list[bytes], event: Any) -> None:
    frames = [dump_json(event) + b"\n"] * 4
    same_as_parsed(frames, FULL)
    parsed.clear()
    made(frames, FULL)
    assert len(parsed) == 4


def test_what_changes_beside_texts_is_not_parsed(parsed: list[bytes]) -> None:
    frames = [dump_json({"n": n, **full(f"t{n}", n, TOKENS, at=f"{n}")}) + b"\n" for n in (1, 2, 3, 4, 5)]
    made(frames, FULL)
    made([b"".join(frames)], FULL)
    assert len(parsed) == 2


def test_deep_values_go_to_the_parser() -> None:
    """The limit holds for what a hole holds, too."""
    deep: Any = []
    for _ in range(30):
        deep = [deep]
    frames = [dump_json(full(f"t{n}", more=deep if n == 3 else None)) + b"\n" for n in range(5)]
    nested = [
        dump_json({**full(f"t{n}"), "usage": {"in": 1, "out": n, "x": deep if n > 2 else 1}}) + b"\n"
        for n in range(5)
    ]
    for events in (frames, nested):
        results = []
        for mapper in (FULL, attrs.evolve(FULL, is_plain=False)):
            reading = Reader(mapper, ReaderOptions(limits=Limits(depth=20)))
            with pytest.raises(CrosswalkError) as caught:
                for data in events:
                    for _ in reading.read(data):
                        pass
            results.append((str(caught.value), reading.partial("asked").text))
        assert results[0] == results[1]


def test_arguments_may_come_with_counts() -> None:
    def piece(n: int) -> bytes:
        wire = [{"index": 0, "function": {"arguments": f"{n} "}}]
        return sse({**chunk({"tool_calls": wire}), "usage": usage(1, n)}, done=False)

    response = same_as_parsed(
        [call("", name="go"), *map(piece, range(6)), sse(chunk({}, "tool_calls"))], VLLM
    )[1]
    assert response["message"]["tool_calls"][0]["arguments"] == "0 1 2 3 4 5 "
    assert response["usage"]["completion_tokens"] == 5


@pytest.mark.sweep
@pytest.mark.parametrize("put", [b"\n", b"\r", b"x", b'"', b"\\", b"1", b"{}", b",", b"\xff", b" "])
@pytest.mark.parametrize("of", ["full", "tokens", "counts", "text"])
def test_a_byte_anywhere_is_read_as_if_parsed(put: bytes, of: str) -> None:
    made_of = {
        "full": lambda n: {"n": n, **full(f"t{n}", n, TOKENS, at=f"{n}")},
        "tokens": lambda n: {"said": {"text": f"t{n}"}, "tokens": TOKENS},
        "counts": lambda n: {"said": {"text": f"t{n}"}, "usage": {"in": 1, "out": n}},
        "text": lambda n: {"at": f"{n}", "said": {"text": f"t{n}"}},
    }[of]
    frames = [dump_json(made_of(n)) for n in range(1, 9)]
    parsed = attrs.evolve(FULL, is_plain=False)
    for place in range(0, len(frames[5]), 3):
        broken = [*frames[:5], frames[5][:place] + put + frames[5][place:], *frames[6:]]
        events = [b"data: %b\n\n" % data for data in broken]
        for reads in (events, [b"".join(events)]):
            assert made(reads, FULL) == made(reads, parsed), (of, put, place)


class Elsewhere(Full):
    """Reads its counts and its log probabilities from more than where it says that they are."""

    leaves_hold = True

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        """Promise too much."""
        return attrs.evolve(super().provider_info(), usage_leaves=("deep.usage", "at", "usage", "other"))

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """Only where there is a time."""
        return super().map_usage(event, state) if event["at"] else None

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> list[ResponseDelta]:
        """With one token more than is said."""
        return [
            attrs.evolve(delta, logprobs=(*delta.logprobs, TokenLogprob("x", -1.0)))
            if delta.logprobs
            else delta
            for delta in super().map_delta(event, state)
        ]


class Uncounted(Full):
    """Promises nothing of its counts."""

    leaves_hold = True

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        """Less than it could."""
        return attrs.evolve(super().provider_info(), usage_leaves=())


class Tidy(Full):
    """Does not pass on what is left of the counts."""

    leaves_hold = True

    @hookimpl
    def extensions(self, event: Any, state: MappingState) -> dict[str, Any]:
        """Without them."""
        return {key: value for key, value in event.items() if key != "usage"}


class Bounded(Full):
    """Takes no count for what it is that is too large."""

    leaves_hold = True

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """With a thousand at most."""
        usage = super().map_usage(event, state)
        return None if usage is None else attrs.evolve(usage, prompt_tokens=min(usage.prompt_tokens, 1000))


class Adding(Full):
    """Adds its reports up."""

    leaves_hold = True

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """All that has been counted."""
        usage = super().map_usage(event, state)
        if usage is None:
            return None
        state.data["in"] = state.data.get("in", 0) + usage.prompt_tokens
        return attrs.evolve(usage, prompt_tokens=state.data["in"])


class Strict(Full):
    """Wants a text in each token, and notes it where there is none."""

    leaves_hold = True

    def tokens(self, holder: dict[str, Any], text: str | None) -> tuple[TokenLogprob, ...] | None:
        """Leave the kind where it is no text."""
        for token in holder.get("tokens", ()):
            accept_string(token, "kind")
        return super().tokens(holder, text)


MANY = [{"token": "a", "logprob": -1.0, "bytes": [97]}] * 40


KINDS = [{**TOKENS[0], "kind": 1}]


@pytest.mark.parametrize(
    ("plugin", "beside"),
    [
        (Uncounted(), {}),
        (Tidy(), {"usage": {"in": 1, "out": 1, "more": "x"}}),
        (Bounded(), {}),
        (Adding(), {}),
        (Strict(), {"tokens": KINDS}),
        (Full(), {"tokens": MANY}),
        (Full(), {"usage": {"out": 1}}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_simple_count_is_asked_for_each_time(
    parsed: list[bytes], plugin: Full, beside: dict[str, Any]
) -> None:
    mapper = registry_of(full=plugin).mapper("full")
    frames = [dump_json({**full(f"t{n}"), **beside}) + b"\n" for n in range(1, 25)]
    same_as_parsed(frames, mapper)
    parsed.clear()
    made(frames, mapper)
    assert len(parsed) == len(frames)


def test_lists_beside_tokens_that_are_no_bytes_are_as_they_were(parsed: list[bytes]) -> None:
    """Numbers that are none of bytes, and a list with more in it, are part of what is compared."""
    odd = [{**TOKENS[0], "at": [-1, 2], "of": ["x", 1]}]
    frames = [dump_json({"said": {"text": f"t{n}"}, "tokens": odd}) + b"\n" for n in range(6)]
    other = dump_json({"said": {"text": "t9"}, "tokens": [{**odd[0], "at": [-1, 3]}]}) + b"\n"
    same_as_parsed([*frames, other, *frames], FULL)
    parsed.clear()
    made(frames, FULL)
    assert len(parsed) == 1


@pytest.mark.parametrize("key", ["candidatesTokenCount", "promptTokenCount"])
def test_a_hook_that_remembers_counts_is_told_of_the_last(key: str) -> None:
    """What a later report leaves out, the one before still says, also where no hook has seen that one."""

    def event(n: int) -> dict[str, Any]:
        counts = {"promptTokenCount": 9, "candidatesTokenCount": n, "totalTokenCount": 9 + n}
        content = {"parts": [{"text": f"w{n} "}], "role": "model"}
        return {"candidates": [{"content": content, "index": 0}], "usageMetadata": counts, "responseId": "r"}

    events = [event(n) for n in range(12)]
    del events[8]["usageMetadata"][key]
    deltas = same_as_parsed([sse(said, done=False) for said in events], registry.mapper("gemini"))[0]
    assert deltas[8]["usage"]["completion_tokens"] == (7 if key == "candidatesTokenCount" else 8)


@pytest.mark.parametrize("tokens", [None, TOKENS])
def test_what_is_read_from_more_than_was_promised_is_parsed(parsed: list[bytes], tokens: Any) -> None:
    mapper = registry_of(elsewhere=Elsewhere()).mapper("elsewhere")
    frames = [dump_json(full(f"t{n}", n, tokens)) + b"\n" for n in (1, 2, 3, 4, 5)]
    same_as_parsed(frames, mapper)
    parsed.clear()
    made(frames, mapper)
    assert len(parsed) == 5


def test_a_number_of_many_digits_may_come_where_others_were() -> None:
    frames = [dump_json(full("t", tokens=TOKENS, usage={"in": 1, "out": n})) + b"\n" for n in range(3)]
    odd = [frame.replace(b'"in":1', b'"in":' + b"9" * 400) for frame in frames]
    same_as_parsed([*frames, *odd, *frames], FULL)


def test_a_number_that_does_not_follow_is_kept(parsed: list[bytes]) -> None:
    said = [1, 2, 3, 4, 4, 9, 7, 8, 9, 10]
    frames = [dump_json({"n": n, "said": {"text": f"t{place}"}}) + b"\n" for place, n in enumerate(said)]
    same_as_parsed(frames, FULL)
    parsed.clear()
    made(frames, FULL)
    assert 1 < len(parsed) < len(frames)


def test_counts_at_the_top_are_not_parsed(parsed: list[bytes]) -> None:
    """llama.cpp counts so; of several answers their sum is told, which is found out for each event."""

    def event(number: int, **more: Any) -> bytes:
        counts = {"tokens_predicted": number, "tokens_evaluated": 9}
        return sse(
            {"index": 0, "content": f"w{number} ", "tokens": [], "stop": False, **counts} | more, done=False
        )

    mapper = registry.mapper("llamacpp")
    events = [event(n) for n in range(1, 30)]
    end = event(30, stop=True, stop_type="eos")
    _, response, _, _ = same_as_parsed([*events, end], mapper)
    assert response["usage"]["completion_tokens"] == 30
    parsed.clear()
    made([*events, end], mapper)
    assert len(parsed) <= 3
    others = [event(3, index=1), *events[4:9], event(5, index=1, stop=True, stop_type="eos")]
    for odd in (True, -1, 1.5, None, "3", 10**20):
        strange = event(1, tokens_predicted="odd").replace(b'"odd"', json.dumps(odd).encode())
        same_as_parsed([*events[:4], strange, *others, end], mapper)


def test_the_tokens_of_a_text_of_responses_are_remembered(parsed: list[bytes]) -> None:
    """Its end says all of them again: then nothing of it is news."""
    tokens = [{"token": f"w{n} ", "logprob": -n / 8, "bytes": [119, 48 + n]} for n in range(9)]
    at = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    said = [
        {"type": "response.output_text.delta", **at, "delta": token["token"], "logprobs": [token]}
        for token in tokens
    ]
    text = "".join(str(token["token"]) for token in tokens)
    whole = {"type": "output_text", "text": text, "annotations": [], "logprobs": tokens}
    ends = [
        {"type": "response.output_text.done", **at, "text": text, "logprobs": tokens},
        {"type": "response.content_part.done", **at, "part": whole},
    ]
    frames = [sse({**event, "sequence_number": n}, done=False) for n, event in enumerate([*said, *ends])]
    mapper = registry.mapper("openai_responses")
    _, response, _, _ = same_as_parsed(frames, mapper)
    assert [token["token"] for token in response["logprobs"]] == [token["token"] for token in tokens]
    assert b'"w8 "' not in dump_json(response["metadata"]["extensions"])
    parsed.clear()
    made(frames, mapper)
    assert len(parsed) == 2 + len(ends)


@pytest.mark.parametrize("start", [15, 16, 18])
def test_counts_that_are_added_to_what_is_remembered_are_not_learnt_by_chance(start: int) -> None:
    """Gemini's candidates, of which a later report says nothing, are 18; so may its thoughts be, just then."""

    def event(n: int, **more: int) -> bytes:
        counts = {"promptTokenCount": 20, "thoughtsTokenCount": n, "totalTokenCount": 20 + n, **more}
        content = {"parts": [{"text": f"w{n} ", "thought": True}], "role": "model"}
        said = {"candidates": [{"content": content, "index": 0}], "usageMetadata": counts, "responseId": "r"}
        return sse(said, done=False)

    odd = event(64, promptTokenCount=42, candidatesTokenCount=18, totalTokenCount=124)
    frames = [*map(event, range(1, 4)), odd, *map(event, range(start, 30))]
    same_as_parsed(frames, registry.mapper("gemini"))


@pytest.mark.parametrize("index", [None, 0, 1, "0", True])
def test_counts_are_of_the_answer_that_the_event_is_of(index: Any) -> None:
    def event(number: int, **more: Any) -> bytes:
        counts = {"tokens_predicted": number, "tokens_evaluated": 9}
        return sse({"index": index, "content": f"w{number} ", "stop": False, **counts, **more}, done=False)

    frames = [*map(event, range(9)), event(9, stop=True, stop_type="eos")]
    same_as_parsed(frames, registry.mapper("llamacpp"))


def test_what_hooks_are_told_of_leaves_no_notes_behind() -> None:
    """Of a count that is none, say: it was noted of the event that was mapped."""

    def event(number: int, **more: Any) -> bytes:
        counts = {"tokens_predicted": number, "tokens_evaluated": 9, "timings": 5}
        return sse({"index": 0, "content": f"w{number} ", "stop": False, **counts, **more}, done=False)

    before = len(NOTED.values)
    same_as_parsed([*map(event, range(9)), event(9, stop=True, stop_type="eos")], registry.mapper("llamacpp"))
    assert len(NOTED.values) == before
