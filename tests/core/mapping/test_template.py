"""Reading a frame by its likeness to the one before is the same as parsing it."""

from __future__ import annotations

import gc
import json
import threading
import weakref
from typing import Any

import attrs
import orjson
import pytest
from hypothesis import given, strategies as st

from alike import (
    FULL,
    OLLAMA,
    TOKENS,
    VLLM,
    Counted,
    Full,
    Stamped,
    call,
    full,
    made,
    same_as_parsed,
    stamps,
    texts,
)
from crosswalk import (
    CrosswalkError,
    LimitError,
    Limits,
    ResponseDelta,
    TokenLogprob,
    ToolCallDelta,
    UsageInfo,
    registry,
    to_jsonable,
)
from crosswalk.errors import IncompleteStreamError
from crosswalk.mapping import Reader, ReaderOptions
from crosswalk.mapping.learnt.learning import learn
from crosswalk.mapping.learnt.template import Template
from crosswalk.mapping.reader import drain
from crosswalk.plugin import Mapper, hookimpl
from crosswalk.plugin.take import NOTED, prune
from crosswalk.plugins import (
    MappingState,
    ProviderInfo,
    accept_string,
    take_string,
)
from crosswalk.types import dump_json
from crosswalk.wire import load_event
from wires import chunk, line, ndjson, registry_of, sse, usage


def template_of(frame: bytes, mapper: Mapper = VLLM) -> Template | None:
    """What is learnt from one frame."""
    event = load_event(frame)
    deltas = list(mapper.map_delta(event, mapper.new_state()) or ())
    prune(event, ())
    return learn(frame, None, (deltas, None, event, {}), mapper)


def frame(text: Any, **more: Any) -> bytes:
    return orjson.dumps(chunk({"content": text}, **more))


@given(st.lists(st.tuples(texts, st.booleans()), min_size=1, max_size=8), st.booleans())
def test_any_text_is_read_as_if_parsed(pieces: list[tuple[str, bool]], ends: bool) -> None:
    """Whatever the model says, escaped or not: the same deltas, the same response, the same bytes."""
    frames = [
        b"data: " + json.dumps(chunk({"content": t}), ensure_ascii=a).encode() + b"\n\n" for t, a in pieces
    ]
    if ends:
        frames.append(sse(chunk({}, "stop")))
    _, response, _, _ = same_as_parsed([sse(chunk({"content": "Hello"}), done=False), *frames], VLLM)
    assert response["message"]["content"] == "Hello" + "".join(text for text, _ in pieces)


@given(st.lists(st.tuples(texts, stamps, st.sampled_from(["content", "thinking"])), min_size=1, max_size=8))
def test_any_text_and_stamp_are_read_as_if_parsed(pieces: list[tuple[str, str, str]]) -> None:
    """A time that changes with every line is kept of every line."""
    lines = [line(message={key: text}, created_at=stamp) for text, stamp, key in pieces]
    frames = [ndjson(line("Hello")), *map(ndjson, lines), ndjson(line(done="stop"))]
    same_as_parsed(frames, OLLAMA)


hostile = st.binary(max_size=12) | st.sampled_from(
    [
        b"\\",
        b'\\"',
        b'"',
        b'","content":"x',
        b'"},"x":{"content":"',
        b"\\u12",
        b"\\ud800",
        b"\\ud83e\\udd99",
        b"\\x",
        b"\\\xc3\xa9",
        b"\xff",
        b"\xc3",
        b"\xed\xa0\x80",
        b"\x00",
        b"\n",
        b"\\n",
        b"\x7f",
        b"\xf0\x9f\xa6\x99",
        b'\\\\"',
        b"a\\",
    ]
)


@given(hostile, st.integers(1, 4))
def test_hostile_bytes_in_the_place_of_the_text(data: bytes, repeated: int) -> None:
    """Broken escapes, quotes, control characters, no UTF-8: what a parser refuses is refused, never shown."""
    learnt = frame("Hello")
    broken = learnt.replace(b"Hello", data)
    frames = [b"data: " + piece + b"\n\n" for piece in [learnt, *[broken] * repeated, frame("x")]]
    same_as_parsed([*frames, sse(chunk({}, "stop"))], VLLM)


@given(st.binary(max_size=12) | st.sampled_from([b"\\", b'"', b"\\n", b"\xff", b"\x1f", b'","x":"']))
def test_hostile_bytes_in_the_place_of_the_stamp(data: bytes) -> None:
    """The same for the string that changes beside the text."""
    learnt = orjson.dumps(line("Hello"))
    broken = learnt.replace(b"2026-01-01T00:00:00Z", data)
    same_as_parsed([learnt + b"\n", broken + b"\n", ndjson(line("x")), ndjson(line(done="stop"))], OLLAMA)


@given(st.data())
def test_any_other_frame_is_read_as_if_parsed(data: st.DataObject) -> None:
    """A frame that differs anywhere else is none of the template's, wherever the byte is changed."""
    learnt = frame("Hello")
    place = data.draw(st.integers(0, len(learnt)))
    cut = data.draw(st.integers(0, 3))
    put = data.draw(st.sampled_from([b"", b" ", b'"', b"1", b"x", b"\\", b"{", b"}", b",", b"null", b"stop"]))
    other = learnt[:place] + put + learnt[place + cut :]
    frames = [b"data: " + piece + b"\n\n" for piece in (learnt, other, frame("x"))]
    same_as_parsed([*frames, sse(chunk({}, "stop"))], VLLM)


EVENTS: dict[str, Any] = {
    "text": chunk({"content": "abc"}),
    "more text": chunk({"content": "de"}),
    "reasoning": chunk({"reasoning": "hm"}),
    "empty text": chunk({"content": ""}),
    "both": chunk({"content": "abc", "reasoning": "hm"}),
    "a call": chunk({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "go", "arguments": "{"}}]}),
    "more of it": chunk({"tool_calls": [{"index": 0, "function": {"arguments": "}"}}]}),
    "another choice": chunk({"content": "other"}, choice=1),
    "a tier": chunk({"content": "abc"}, service_tier="fast"),
    "another tier": chunk({"content": "abc"}, service_tier="slow"),
    "usage and a tier": chunk(None, usage=usage(1, 2), service_tier="odd"),
    "usage on a text": chunk({"content": "abc"}, usage=usage(1, 3)),
    "tokens": {**chunk(), "choices": [{"index": 0, "delta": {"content": "abc"}, "token_ids": [7]}]},
    "logprobs": {
        **chunk(),
        "choices": [
            {"index": 0, "delta": {"content": "a"}, "logprobs": {"content": [{"token": "a", "logprob": -1}]}}
        ],
    },
    "refusal": chunk({"refusal": "no"}),
    "an end": chunk({"content": "abc"}, "stop"),
    "another model": chunk({"content": "abc"}, model="n"),
    "an error": {"error": {"message": "abc"}},
    "a sentinel": b"[DONE]",
}


@given(
    st.lists(
        st.tuples(st.sampled_from(list(EVENTS)), st.sampled_from([b"", b"", b"event: x\n", b"event: y\n"])),
        max_size=12,
    )
)
def test_templates_do_not_show_in_named_events(events: list[tuple[str, bytes]]) -> None:
    """The same where events have names, alike ones other names among them."""
    same_as_parsed([named + sse(EVENTS[name], done=False) for name, named in events], VLLM)


class Named(Stamped):
    """A provider to which an event's name says what it is."""

    leaves_hold = True

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> list[ResponseDelta]:
        """Think or speak, as the name says."""
        text = take_string(event["said"], "text")
        if state.event_name == "think":
            return [ResponseDelta(reasoning_delta=text)]
        return [ResponseDelta(content_delta=text)]


def test_many_events_of_other_names_in_one_read() -> None:
    """They come after alike ones of one name, and say what theirs says."""
    mapper = registry_of(named=Named()).mapper("named")
    events = [b"event: %s\n" % name + sse({"said": {"text": "x"}}, done=False) for name in (b"think", b"say")]
    same_as_parsed([events[0]] * 20 + [b"".join(events * 10)], mapper)


@given(st.lists(st.tuples(st.sampled_from([b"", b"event: think\n", b"event: say\n"]), texts), max_size=8))
def test_a_name_is_part_of_an_event(events: list[tuple[bytes, str]]) -> None:
    """An event of another name is another event, be its bytes as alike as can be."""
    mapper = registry_of(named=Named()).mapper("named")
    same_as_parsed([name + sse({"said": {"text": text}}, done=False) for name, text in events], mapper)


@given(st.lists(st.sampled_from(list(EVENTS)), max_size=12))
def test_templates_do_not_show(names: list[str]) -> None:
    """Whatever comes between runs of alike events: order, extensions, usage and errors are as if all were parsed."""
    same_as_parsed([sse(EVENTS[name], done=False) for name in names], VLLM)


LINES: dict[str, Any] = {
    "text": line("abc"),
    "later": line("de", created_at="2026-01-01T00:00:01Z"),
    "thinking": line(message={"thinking": "hm"}),
    "a call": line(message={"tool_calls": [{"function": {"name": "go", "arguments": {}}}]}),
    "remote": line("abc", remote_model="r"),
    "another remote": line("abc", remote_model="s"),
    "no time": line("abc", created_at=5),
    "early end": line("abc", done="length", eval_count=1),
    "an error": {"error": "abc"},
}


@given(st.lists(st.sampled_from(list(LINES)), max_size=12))
def test_templates_do_not_show_in_lines(names: list[str]) -> None:
    """The same where a time changes with every line."""
    same_as_parsed([ndjson(LINES[name]) for name in names], OLLAMA)


def test_text_keeps_its_place_among_calls_and_reasoning() -> None:
    """Runs of text before, between and after tool calls and reasoning stay where they were."""
    text = [EVENTS["text"]] * 3
    stream = [
        *text,
        EVENTS["a call"],
        *text,
        EVENTS["more of it"],
        EVENTS["reasoning"],
        *text,
        EVENTS["an end"],
    ]
    response = same_as_parsed([sse(*stream)], VLLM)[1]
    assert [(segment["type"], segment["content"]) for segment in response["segments"]] == [
        ("text", "abc" * 3),
        ("tool_call", "{}"),
        ("text", "abc" * 3),
        ("reasoning", "hm"),
        ("text", "abc" * 4),
    ]


def test_an_event_with_a_name_or_usage_ends_the_template() -> None:
    """What the template's constant fields said may have been contradicted since: then it is news again."""
    text = sse(EVENTS["a tier"], done=False)
    other = sse(EVENTS["usage and a tier"], done=False)
    named = b"event: x\n" + sse(EVENTS["another tier"], done=False)
    end = sse(EVENTS["an end"])
    for between in (other, named):
        deltas = same_as_parsed([text, text, between, text, end], VLLM)[0]
        tiers = [delta.get("extensions", {}).get("service_tier") for delta in deltas]
        assert tiers[0] == tiers[3] == "fast"
        assert tiers[2] in {"odd", "slow"}


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("is_live", [True, False])
def test_what_was_read_is_freed_with_its_reader(count: int, is_live: bool) -> None:
    """A million answers are not to wait for the garbage collector: nothing goes in a circle once one is over."""
    events = [chunk({"content": "x" * n}, choice=n % count) for n in range(1, 30)]
    ends = [chunk({}, "stop", choice=n) for n in range(count)]
    frames = [*(sse(event, done=False) for event in [*events, *ends[:-1]]), sse(ends[-1])]
    gc.collect()
    gc.disable()
    try:
        reader = Reader(VLLM, ReaderOptions(timer=lambda: 0.0))
        for data in frames if is_live else [b"".join(frames)]:
            drain(reader.read(data))
        drain(reader.finish())
        assert len(reader.response().alternatives) == count - 1
        state = weakref.ref(reader._state)
        del reader
        assert state() is None
    finally:
        gc.enable()


def test_what_could_not_be_read_on_is_freed_with_its_error() -> None:
    frames = [sse(chunk({"content": "x" * n}), done=False) for n in range(1, 30)]
    gc.collect()
    gc.disable()
    try:
        reader = Reader(VLLM, ReaderOptions(timer=lambda: 0.0))
        for data in frames:
            drain(reader.read(data))
        with pytest.raises(IncompleteStreamError):
            drain(reader.finish())
        state = weakref.ref(reader._state)
        del reader
        assert state() is None
    finally:
        gc.enable()


def test_alike_frames_are_not_parsed(parsed: list[bytes]) -> None:
    """Most of a stream is read by the template: only what differs in more than text and time is parsed."""
    data = ndjson(*(line(text) for text in ("a", "b", 'c"\n', "d")), line(done="stop"))
    assert made([data], OLLAMA)[2] is None
    assert len(parsed) == 2


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (chunk({"content": "Hello"}), True),
        (chunk({"reasoning": "Hello"}), True),
        (chunk({"reasoning_content": "Hello"}), True),
        (chunk({"content": " "}), True),
        (chunk({"content": "Hello"}, choice=2), True),
        (chunk({"content": "Hello", "tool_calls": []}), True),
        (EVENTS["logprobs"], True),
        ({"choices": [{"text": "Hello"}]}, True),
        # The same string elsewhere might change with the text.
        (chunk({"content": "m"}), False),
        (chunk({"content": "Hello"}, service_tier="Hello"), False),
        (chunk({"content": "Hello", "reasoning_content": "Hello"}), False),
        # Escapes are found as servers write them.
        (chunk({"content": 'a"b'}), True),
        (chunk({"content": "a\nb"}), True),
        (chunk({"content": "a\\b"}), True),
        # More than a text.
        (chunk({"content": ""}), False),
        (chunk({"content": "Hello", "reasoning": "hm"}), False),
        (chunk({"content": "Hello"}, "stop"), False),
        (chunk({"refusal": "Hello"}), False),
        (EVENTS["a call"], False),
        (chunk(), False),
        ({"error": "Hello"}, False),
        ({"choices": [{"delta": {"content": "a"}}, {"index": 1, "delta": {"content": "b"}}]}, False),
    ],
)
def test_a_template_is_learnt_from_a_text_alone(event: Any, text: bool) -> None:
    """An event with one delta of text or reasoning and nothing else, where the string is found in one place."""
    assert (template_of(orjson.dumps(event)) is not None) is text


def test_a_template_knows_what_it_reads() -> None:
    """Kind, choice and the name of the stamp are those of the event it was learnt from."""
    template = template_of(orjson.dumps(chunk({"reasoning": "hm"}, choice=2)))
    assert template is not None
    assert (template.says, template.choice, template.stamps()) == ("reasoning_delta", 2, [])
    stamped = template_of(orjson.dumps(line("Hello")), OLLAMA)
    assert stamped is not None
    assert (stamped.says, stamped.stamps()) == ("content_delta", ["created_at"])


@pytest.mark.parametrize(
    "data",
    [
        # Spaces as Python's json writes them are as good as none.
        json.dumps(chunk({"content": "Hello"})).encode(),
        b'{"choices": [{"delta":{"content":"Hello"}}]}',
        b'{"choices":[{"delta":{"content":"\\u0048ello"}}]}',
    ],
)
def test_separators_may_have_a_space(data: bytes) -> None:
    """``"key": "text"`` is found like ``"key":"text"``."""
    template = template_of(data)
    assert template is not None
    same_as_parsed([b"data: %b\n\n" % data.replace(b"ello", b"%d" % n) for n in range(5)], VLLM)


@pytest.mark.parametrize(
    "data",
    [
        b'{"choices":[{"delta":{"content"  :  "Hello"}}]}',
        b'{"choices":[{"delta":{"conten\\u0074":"Hello"}}]}',
        b'{"content":"Hello","choices":[{"delta":{"content":"H\\u0065llo"}}]}',
        b'{"copy":"Hello","choices":[{"delta":{"content":"Hell\\u006f"}}]}',
        # A first text is replaced by a second, equal one: it is not clear which of them is read.
        b'{"choices":[{"delta":{"content":"Hello","content":"Hello"}}]}',
        # The key stands in the right place, but not in the right object.
        b'{"x":{"content":"Hello"},"choices":[{"delta":{"conten\\u0074":"H\\u0065llo"}}]}',
        b'{"x":{"content":"Hello"},"choices":[{"delta":{"content":"H\\u0065llo"}}]}',
    ],
)
def test_an_odd_frame_teaches_nothing(data: bytes) -> None:
    """Where the text does not stand in the frame as it is, under its key and once, every frame is parsed."""
    assert template_of(data) is None


def stamped(*stamps: str) -> Mapper:
    plugin = Stamped()
    plugin.stamps = stamps
    return registry_of(stamped=plugin).mapper("stamped")


@pytest.mark.parametrize(
    ("event", "stamps", "learnt"),
    [
        ({"at": "1", "said": {"text": "Hello"}}, ("at",), True),
        ({"said": {"text": "Hello"}}, ("at",), True),
        ({"at": 1, "said": {"text": "Hello"}}, ("at",), True),
        ({"said": {"text": "Hello"}, "at": "1"}, ("at",), True),
        ({"at": 'a"', "said": {"text": "Hello"}}, ("at",), True),
        ({"at": "Hello", "said": {"text": "Hello"}}, ("at",), False),
        ({"at": "1", "on": "2", "said": {"text": "Hello"}}, ("at", "on"), True),
        ({"at": "1", "on": 2, "said": {"text": "Hello"}}, ("at", "on"), True),
        ({"said": {"at": "1", "text": "Hello"}}, ("said.at",), False),
        ({"said": ["x"], "text": "Hello"}, ("said[0].at",), False),
    ],
)
def test_a_stamp_stands_at_the_top_before_or_behind_the_text(
    event: Any, stamps: tuple[str, ...], learnt: bool
) -> None:
    """A string or a number; elsewhere nothing is learnt, and all is parsed."""
    mapper = stamped(*stamps)
    delta = ResponseDelta(0, content_delta="Hello")
    left = {key: value for key, value in event.items() if key in stamps}
    template = learn(orjson.dumps(event), None, ([delta], None, left, {}), mapper)
    assert (template is not None) is learnt


@given(st.lists(st.tuples(texts, st.sampled_from(["same", "text", "new call"])), max_size=12))
def test_arguments_are_read_as_if_parsed(pieces: list[tuple[str, str]]) -> None:
    """Of the call that is open, also where another one with the same index begins, or text comes between."""
    frames = [call("{", name="go")]
    for text, kind in pieces:
        said = sse(chunk({"content": text}), done=False)
        frames.append(
            call(text) if kind == "same" else said if kind == "text" else call(text, id=text, name="other")
        )
    same_as_parsed([*frames, sse(chunk({}, "tool_calls"))], VLLM)


def test_most_fragments_of_arguments_are_not_parsed(parsed: list[bytes]) -> None:
    pieces = ["", *'{"city": "Paris", "days": 3}', "\n"]
    frames = [call("", name="go"), *map(call, pieces), sse(chunk({}, "tool_calls"))]
    response = made(frames, VLLM)[1]
    assert response["message"]["tool_calls"][0]["arguments"] == "".join(pieces)
    assert len(parsed) == 4, "the two that open the call, one to learn from, and the end"


@pytest.mark.parametrize(("choices", "most"), [(2, 5), (8, 17), (80, 500)])
def test_interleaved_choices_are_read_as_if_parsed(parsed: list[bytes], choices: int, most: int) -> None:
    """Each choice has its template, as long as there are not too many."""
    frames = [sse(chunk({"content": f"{n} "}, choice=n % choices), done=False) for n in range(6 * choices)]
    frames += [sse(chunk({}, "stop", choice=n), done=False) for n in range(choices)]
    response = made([*frames, sse()], VLLM)[1]
    assert len(response["alternatives"]) == choices - 1
    assert len(parsed) <= most + choices
    same_as_parsed([*frames, sse()], VLLM)


@given(st.lists(st.tuples(texts, st.integers(-(10**20), 10**20) | st.just(7), stamps), max_size=8))
def test_numbers_that_change_are_read_as_if_parsed(events: list[tuple[str, int, str]]) -> None:
    mapper = registry_of(counted=Counted()).mapper("counted")
    first = {"n": 1, "said": {"text": "Hello"}, "at": "now"}
    events_ = [{"n": n, "said": {"text": text}, "at": at} for text, n, at in events]
    same_as_parsed([dump_json(event) + b"\n" for event in (first, {**first, "n": 2}, *events_)], mapper)


@pytest.mark.parametrize(
    "number", [b"7.0", b"07", b" 7", b"-0", b"7,8", b"9" * 30, b"true", b'"7"', b"[7]", b""]
)
def test_odd_bytes_in_the_place_of_a_number(number: bytes) -> None:
    mapper = registry_of(counted=Counted()).mapper("counted")
    learnt = b'{"n":%b,"said":{"text":"Hello"},"at":"now"}\n'
    same_as_parsed([learnt % n for n in (b"1", b"2", number, b"3")], mapper)


FRAMES = (
    b"data: %b\n\n",
    b"data:%b\n\n",
    b"data: %b\r\n\r\n",
    b"event: say\ndata: %b\n\n",
    b"id: 5\ndata: %b\n\n",
    b"data: %b\n\n: keep-alive\n\n",
    b"data: %b\n",
    b"\n",
    b"data: %b\n\nevent: think\n",
    b"data: %b\r",
    b": wait\n",
    b"data: %b\n\ndata: ",
)


@given(st.lists(st.tuples(st.sampled_from(FRAMES), texts), max_size=12), st.sampled_from(FRAMES[:6]))
def test_whatever_stands_around_events_in_one_read(events: list[tuple[bytes, str]], usual: bytes) -> None:
    """A read that is one event is not framed anew; in any other the framing finds what it finds."""
    mapper = registry_of(named=Named()).mapper("named")
    pieces = [(usual, "a"), (usual, "b"), (usual, "c"), *events, (usual, "d")]
    frames = [
        frame.replace(b"%b", orjson.dumps({"said": {"text": text}}).replace(b"%", b""))
        for frame, text in pieces
    ]
    parsed = made(frames, attrs.evolve(mapper, is_plain=False))
    assert made(frames, mapper) == parsed


@pytest.mark.parametrize("limits", [Limits(events=6), Limits(total_bytes=700), Limits(line_bytes=120)])
def test_limits_hold_where_nothing_is_parsed(limits: Limits) -> None:
    frames = [sse({"said": {"text": "x" * n}}, done=False) for n in (1, 1, 1, 1, 1, 200, 1, 1, 1, 300)]
    mapper = registry_of(named=Named()).mapper("named")
    errors = []
    for one in (mapper, attrs.evolve(mapper, is_plain=False)):
        reading, deltas = Reader(one, ReaderOptions(limits=limits)), []
        with pytest.raises(LimitError) as caught:
            for data in frames:
                deltas += reading.read(data)
        errors.append((str(caught.value), to_jsonable(deltas), caught.value.partial.text))  # type: ignore[union-attr]
    assert errors[0] == errors[1]


def test_an_event_of_several_lines_is_framed_each_time(parsed: list[bytes]) -> None:
    """What stands in the read is not the event as its frame has it."""
    mapper = registry_of(named=Named()).mapper("named")
    frames = [b'data: {"said":\ndata: {"text":"%b"}}\n\n' % text for text in (b"a", b"b", b"c", b"d")]
    same_as_parsed(frames, mapper)
    parsed.clear()
    made(frames, mapper)
    assert len(parsed) == 1


def test_padding_behind_the_text_is_kept() -> None:
    """OpenAI pads every chunk behind its text: the template reads both, as the parser would."""
    frames = [
        sse({**chunk({"content": text}), "obfuscation": pad}, done=False)
        for text, pad in [("a", "p1"), ("b", "p2"), ('c"', "p3"), ("d", "p3")]
    ]
    mapper = registry.mapper("openai")
    response = same_as_parsed([*frames, sse(chunk({}, "stop"))], mapper)[1]
    assert response["message"]["content"] == 'abc"d'
    assert response["metadata"]["extensions"]["obfuscation"] == "p3"


def test_without_text_leaves_nothing_is_learnt() -> None:
    """A plugin that promises nothing has every event mapped."""
    delta = ResponseDelta(0, content_delta="Hello")
    mapper = attrs.evolve(VLLM, info=ProviderInfo(title="T"))
    assert learn(b'{"a":"Hello"}', None, ([delta], None, {}, {}), mapper) is None


def test_a_probe_in_the_text_is_text() -> None:
    """The word that the proof uses may be said by a model."""
    frames = [sse(chunk({"content": t}), done=False) for t in ("crosswalk-probe", "x", "crosswalk-probe")]
    assert same_as_parsed([*frames, sse(chunk({}, "stop"))], VLLM)[1]["message"]["content"] == (
        "crosswalk-probexcrosswalk-probe"
    )


@pytest.mark.parametrize("order", ["01010n", "0n1n0n1n", "00n11n0n", "n0n1n0", "010101"])
def test_a_fragment_without_an_index_goes_on_with_the_call_that_was_read_last(order: str) -> None:
    """Also where that was read by its likeness, or where the fragment is like one of a call that was open before."""

    def piece(text: str, index: str, **more: Any) -> bytes:
        call = {"function": {"arguments": text}, **more} | ({} if index == "n" else {"index": int(index)})
        return sse(chunk({"tool_calls": [call]}), done=False)

    named = {"type": "function", "function": {"name": "f", "arguments": ""}}
    frames = [piece("", n, id=f"c-{n}", **named) for n in "01"]
    frames += [piece(f"{place} ", n) for place, n in enumerate(order)]
    _, response, _, _ = same_as_parsed([*frames, sse(chunk({}, "tool_calls"))], VLLM)
    expected, last = {"0": "", "1": ""}, "1"
    for place, n in enumerate(order):
        last = last if n == "n" else n
        expected[last] += f"{place} "
    said = [call["arguments"] for call in response["message"]["tool_calls"]]
    assert said == [text or "{}" for text in expected.values()]


def test_a_block_is_apart_from_the_one_that_spoke_last() -> None:
    """Whose text came before is what the hooks remember of the events that they have seen: one kind of a choice at a time."""

    def piece(block: int, **said: str) -> bytes:
        (kind,) = said
        event = {"type": "content_block_delta", "index": block, "delta": {"type": f"{kind}_delta", **said}}
        return b"event: content_block_delta\ndata: %b\n\n" % orjson.dumps(event)

    frames = [piece(0, thinking="Hm"), piece(0, text="One"), piece(0, thinking="."), piece(1, text="Two")]
    _, response, _, _ = same_as_parsed(frames, registry.mapper("anthropic"))
    assert [part["content"] for part in response["segments"]][:4] == ["Hm", "One", ".", "Two"]


def test_an_event_in_a_comment_is_no_event() -> None:
    """Where a read holds the bytes of the frame twice, nobody knows which of them are the frame."""
    one, two = frame("one "), frame("two ")
    reads = [b"data: %b\n\n" % one, *(b": %b\ndata: %b\n\n" % (said, one) for said in (one, two))]
    _, response, _, _ = same_as_parsed([*reads, sse(chunk({}, "stop"))], VLLM)
    assert response["message"]["content"] == "one one one "


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


def test_choices_of_which_one_begins_to_think_are_read_as_if_parsed() -> None:
    keys = ["content"] * 12 + ["content", "reasoning"] * 4 + ["reasoning", "content"] * 4
    frames = [sse(chunk({key: f"{n} "}, choice=n % 2), done=False) for n, key in enumerate(keys)]
    same_as_parsed([*frames, sse(chunk({}, "stop"), chunk({}, "stop", choice=1))], VLLM)


@pytest.mark.parametrize("order", ["0101011001100110", "012210012210210", "000111222000111222"])
def test_choices_in_any_order_are_read_as_if_parsed(parsed: list[bytes], order: str) -> None:
    frames = [sse(chunk({"content": f"{n} "}, choice=int(c)), done=False) for n, c in enumerate(order)]
    counted = [
        sse({**chunk({"content": f"{n} "}, choice=int(c)), "usage": usage(1, n)}, done=False)
        for n, c in enumerate(order)
    ]
    for each in (frames, counted):
        same_as_parsed(each, VLLM)
        parsed.clear()
        made(each, VLLM)
        assert len(parsed) == len(set(order))


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

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """With a thousand at most."""
        usage = super().map_usage(event, state)
        return None if usage is None else attrs.evolve(usage, prompt_tokens=min(usage.prompt_tokens, 1000))


class Adding(Full):
    """Adds its reports up."""

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


def test_names_that_change_in_one_read() -> None:
    frames = [b"event: %b\n" % name + sse(chunk({"content": "t "}), done=False) for name in (b"a", b"b") * 4]
    same_as_parsed([*frames[::2], *frames], VLLM)


@pytest.mark.parametrize("tokens", [None, TOKENS])
def test_what_is_read_from_more_than_was_promised_is_parsed(parsed: list[bytes], tokens: Any) -> None:
    mapper = registry_of(elsewhere=Elsewhere()).mapper("elsewhere")
    frames = [dump_json(full(f"t{n}", n, tokens)) + b"\n" for n in (1, 2, 3, 4, 5)]
    same_as_parsed(frames, mapper)
    parsed.clear()
    made(frames, mapper)
    assert len(parsed) == 5


def test_a_comma_is_no_string_because_it_stands_between_quotes() -> None:
    """Else a choice that begins with one takes from the others what was learnt; the same string elsewhere still counts."""
    assert template_of(frame(",")) is not None
    assert template_of(frame(",", model=",")) is None
    assert template_of(frame(",", more={"a": [1, {",": None}]})) is None


def test_a_text_may_stand_elsewhere_in_another_spelling() -> None:
    """What it means there may not hold for the next text."""
    end = sse(chunk({}, "stop"))
    said = (
        b'{"id":"a","choices":[{"index":0,"message":{"c\\u006fntent":"\\u0061bc"},"delta":{"content":"%b"}}]}'
    )
    same_as_parsed(
        [*(sse(said % text, done=False) for text in (b"abc", b"y", b"z")), end], attrs.evolve(VLLM)
    )


@pytest.mark.parametrize("words", [["a", "b", "b ", "b", "a"], [*"abcdefgh", "b ", "b", *"cdefgh"]])
def test_what_the_hooks_left_may_be_the_text_of_the_next_event(words: list[str]) -> None:
    """They leave the ``text`` of a choice that its ``content`` does not say, and take the one that it does."""
    events = [chunk({"content": word}) for word in words]
    for event in events:
        event["choices"][0] |= {"text": "b ", "index": None, "seed": None}
    mapper, frames = attrs.evolve(VLLM), [sse(event, done=False) for event in events]
    same_as_parsed([*frames, sse(chunk({}, "stop"))], mapper)
    same_as_parsed([*frames, sse(chunk({}, "stop"))], mapper)


def test_a_number_of_many_digits_may_come_where_others_were() -> None:
    frames = [dump_json(full("t", tokens=TOKENS, usage={"in": 1, "out": n})) + b"\n" for n in range(3)]
    odd = [frame.replace(b'"in":1', b'"in":' + b"9" * 400) for frame in frames]
    same_as_parsed([*frames, *odd, *frames], FULL)


def test_a_key_that_stands_everywhere_is_not_looked_for() -> None:
    event = {"choices": [{"delta": {"content": "Hello"}}], "more": [{"content": n} for n in range(70)]}
    assert template_of(orjson.dumps(event)) is None


def test_an_object_beside_the_text_may_become_something_else() -> None:
    frames = [dump_json({"said": {"text": f"t{n}"}, "usage": {"in": 1, "out": n}}) + b"\n" for n in range(6)]
    for other in (b"null", b"[]", b"{", b'{"in":1,"out":2},"usage":{"in":1,"out":4}', b"7"):
        odd = frames[4].replace(b'{"in":1,"out":4}', other)
        same_as_parsed([*frames[:4], odd, frames[5]], FULL)


def test_a_number_that_does_not_follow_is_kept(parsed: list[bytes]) -> None:
    said = [1, 2, 3, 4, 4, 9, 7, 8, 9, 10]
    frames = [dump_json({"n": n, "said": {"text": f"t{place}"}}) + b"\n" for place, n in enumerate(said)]
    same_as_parsed(frames, FULL)
    parsed.clear()
    made(frames, FULL)
    assert 1 < len(parsed) < len(frames)


def ids(number: int, values: Any, *, index: int = 0, **more: Any) -> bytes:
    """A chunk of vLLM's with the ids of its tokens."""
    said = chunk({"content": f"w{number} "}, choice=index, **more)
    said["choices"][0]["token_ids"] = values
    return sse(said, done=False)


def test_a_list_that_grows_is_not_parsed(parsed: list[bytes]) -> None:
    frames = [ids(n, [n, n]) for n in range(40)]
    deltas, response, _, _ = same_as_parsed(frames, VLLM)
    assert deltas[30]["extensions"] == {"choices": [{"index": 0, "token_ids": [30, 30]}]}
    grown = response["metadata"]["extensions"]["choices"][0]["token_ids"]
    assert grown == [n for n in range(40) for _ in "ab"]
    parsed.clear()
    made(frames, VLLM)
    assert len(parsed) == 1


@pytest.mark.parametrize(
    "odd", [[], [-1], [1, -1], [True], [1.0], [10**20], ["1"], [[1]], None, 7, "7", {"a": 1}], ids=repr
)
def test_what_is_no_list_of_counts_is_kept_as_it_was_sent(odd: Any) -> None:
    """In the place of such a list, and where the list was to begin."""
    frames = [ids(n, [n]) for n in range(6)]
    one, other = (ids(n, "odd").replace(b'"odd"', json.dumps(odd).encode()) for n in (7, 8))
    same_as_parsed([*frames, one, *frames, sse(chunk({}, "stop"))], VLLM)
    same_as_parsed([one, other, *frames, one], VLLM)


def test_a_list_that_stands_elsewhere_in_the_extensions_is_not_gone_on_with() -> None:
    """Choices that have no number of their own, or one twice, are merged otherwise."""
    other = sse({"id": "chatcmpl-1", "choices": [{"delta": {}, "token_ids": [1], "x": 1}]}, done=False)
    twice = sse({"id": "chatcmpl-1", "choices": [{"index": 0, "x": 1}, {"index": 0, "y": 1}]}, done=False)
    beside = sse({"id": "chatcmpl-1", "choices": "none"}, done=False)
    for odd in (other, twice, beside):
        same_as_parsed([odd, *(ids(n, [n]) for n in range(6)), odd, *(ids(n, [n]) for n in range(6))], VLLM)


def test_several_choices_may_have_lists_that_grow() -> None:
    same_as_parsed([ids(n, [n], index=n % 2) for n in range(12)], VLLM)
    same_as_parsed([ids(n, [n], index=n // 4) for n in range(12)], VLLM)


class Listing(Stamped):
    """A provider whose events carry lists, which arrive in pieces or do not."""

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        """Promise more than the reader makes use of."""
        leaves, pieces = ("ids", "of[0].ids", "twice", "words", "at"), ("ids", "of[].ids", "twice", "words")
        return ProviderInfo(title="Listing", text_leaves=("said.text",), stamp_leaves=leaves, pieces=pieces)

    @hookimpl
    def extensions(self, event: Any, state: MappingState) -> dict[str, Any]:
        """What was left, and of some of it more."""
        if "twice" in event:
            event["twice"] = event["twice"] * 2
        left: dict[str, Any] = event
        return left


@pytest.mark.parametrize(
    ("beside", "parses"),
    [
        (lambda n: {"ids": [n]}, 1),
        (lambda n: {"of": [{"index": 3, "ids": [n]}]}, 1),
        (lambda n: {"of": [{"ids": [n]}]}, 8),  # which of them it is nobody knows
        (lambda n: {"ids": [n], "at": f"{n}"}, 8),
        (lambda n: {"twice": [n]}, 8),
        (lambda n: {"words": [f"{n}"]}, 8),
    ],
)
def test_one_list_that_is_left_as_it_was_sent_may_grow(parsed: list[bytes], beside: Any, parses: int) -> None:
    mapper = registry_of(listing=Listing()).mapper("listing")
    frames = [ndjson({"said": {"text": f"t{n}"}, **beside(n)}) for n in range(8)]
    same_as_parsed(frames, mapper)
    parsed.clear()
    made(frames, mapper)
    assert len(parsed) == parses


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


def piece_of(place: int, text: str, choice: int = 0, **first: Any) -> bytes:
    """A piece of the arguments of the call at *place*."""
    call = {"index": place, "function": {"arguments": text, **first}}
    return sse(chunk({"tool_calls": [call]}, choice=choice), done=False)


def in_turns(order: str) -> list[bytes]:
    """The arguments of two calls, a piece for each digit in *order*; a letter is a piece of the second choice."""
    places = {"0": (0, 0), "1": (1, 0), "2": (2, 0), "a": (0, 1), "b": (1, 1)}
    named = {"name": "go"}
    opened = [piece_of(*places[one][:1], "", places[one][1], **named) for one in sorted({*order})]
    return [*opened, *(piece_of(places[one][0], f"{n} ", places[one][1]) for n, one in enumerate(order))]


@pytest.mark.parametrize(
    ("order", "most"), [("01" * 20, 6), ("0011" * 10, 6), ("012" * 12, 8), ("0" * 9 + "1" * 9, 6)]
)
def test_arguments_of_calls_in_turns_are_not_parsed(parsed: list[bytes], order: str, most: int) -> None:
    frames = [*in_turns(order), sse(chunk({}, "tool_calls"))]
    same_as_parsed(frames, VLLM)
    parsed.clear()
    made(frames, VLLM)
    assert len(parsed) <= most


@pytest.mark.parametrize("order", ["0101ab01ab", "ab01ab01ab01", "0a1b0a1b0a1b", "010101aaaa0101"])
def test_calls_of_several_choices_in_turns_are_read_as_if_parsed(order: str) -> None:
    ends = [sse(chunk({}, "tool_calls", choice=n), done=False) for n in range(2)]
    same_as_parsed([*in_turns(order), *ends], VLLM)


class Caller(Stamped):
    """A provider with calls, who remembers which one a piece was of, in a way of its own."""

    def __init__(self, memory: Any) -> None:
        self.memory = memory

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        """Promise that arguments are nothing but arguments."""
        return ProviderInfo(title="Caller", text_leaves=("say",))

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> list[ResponseDelta]:
        """A piece of a call; of the last one, where it does not say of which."""
        last = state.data.get("last", 0) if self.memory == "last" else 0
        place = event.pop("call", last)
        state.data["last"] = place if self.memory == "last" else 0
        if self.memory == "lock":
            state.data["lock"] = threading.Lock()
        name = take_string(event, "name")
        return [ResponseDelta(tool_call_delta=ToolCallDelta(place, None, name, take_string(event, "say")))]


@pytest.mark.parametrize(("memory", "parses"), [("none", 4), ("last", 23), ("lock", 23)])
def test_calls_take_turns_where_no_hook_minds_which_came_last(
    parsed: list[bytes], memory: str, parses: int
) -> None:
    mapper = registry_of(caller=Caller(memory)).mapper("caller")
    opened = [ndjson({"call": n, "name": f"go{n}", "say": "x"}) for n in range(2)]
    frames = [*opened, *(ndjson({"call": n % 2, "say": f"{n} "}) for n in range(21))]
    same_as_parsed([*frames, ndjson({"say": "."}), *frames[2:5], ndjson({"say": ","})], mapper)
    parsed.clear()
    made(frames, mapper)
    assert len(parsed) == parses


class Renaming(Stamped):
    """A provider whose ``extensions`` hook keeps the time under another name, or not at all."""

    leaves_hold = True

    def __init__(self, name: str | None) -> None:
        self.name = name

    @hookimpl
    def extensions(self, event: Any, state: MappingState) -> dict[str, Any]:
        """What was left, with the time in another place."""
        at = event.pop("at")
        left: dict[str, Any] = event
        return left if self.name is None else {**left, self.name: at}


@pytest.mark.parametrize("name", [None, "when", "at"])
def test_a_stamp_is_where_the_extensions_hook_puts_it(name: str | None) -> None:
    mapper = registry_of(renaming=Renaming(name)).mapper("renaming")
    for _ in range(2):  # what was learnt of the first is no other for the next
        same_as_parsed([ndjson({"at": f"{n}", "said": {"text": f"t{n}"}}) for n in range(8)], mapper)


def test_calls_in_turns_leave_no_notes_behind() -> None:
    """What hooks note of an event that they are shown once more is nobody's."""
    odd = [piece.replace(b'"created":1', b'"created":"x"') for piece in in_turns("01" * 6)]
    before = len(NOTED.values)
    same_as_parsed(odd, VLLM)
    assert len(NOTED.values) == before


class Hearing(Caller):
    """A provider who remembers of the pieces of calls those that it was told of."""

    leaves_hold = True

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> list[ResponseDelta]:
        """A piece of a call, or how many characters it was told of."""
        if "ask" in event:
            return [ResponseDelta(content_delta=f"{sum(map(len, state.unseen.get(0, [])))}")]
        return super().map_delta(event, state)


@pytest.mark.parametrize("order", ["01" * 5, "01" + "0011" * 2])
def test_a_hook_is_told_of_the_pieces_of_all_calls(parsed: list[bytes], order: str) -> None:
    mapper = registry_of(hearing=Hearing("none")).mapper("hearing")
    opened = [ndjson({"call": n, "name": f"go{n}", "say": "x"}) for n in range(2)]
    pieces = [ndjson({"call": int(n), "say": "piece"}) for n in order]
    deltas = made([*opened, *pieces, ndjson({"ask": 1})], mapper)[0]
    seen = len(parsed) - len(opened) - 1
    (told,) = [delta["content_delta"] for delta in deltas if "content_delta" in delta]
    assert told == str(5 * (len(order) - seen))


def test_a_call_that_was_opened_just_now_is_not_gone_on_with() -> None:
    """The next such event may open another one, as every start of Cohere's does."""

    def start(text: str, **more: Any) -> bytes:
        call = {"type": "function", "function": {"arguments": text, **more}}
        message = {"message": {"tool_calls": call}}
        return sse({"type": "tool-call-start", "index": 0, "delta": message}, done=False)

    first = sse({"id": "c", "type": "message-start", "delta": {"message": {"role": "assistant"}}}, done=False)
    deltas = same_as_parsed([first, start("{", name="go"), *map(start, "abcdef")], registry.mapper("cohere"))[
        0
    ]
    assert [delta["tool_call_delta"]["index"] for delta in deltas[-6:]] == [*range(1, 7)]


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
