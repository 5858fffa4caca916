"""Reading a frame by its likeness to the one before is the same as parsing it."""

from __future__ import annotations

import gc
import json
import weakref
from typing import Any

import attrs
import orjson
import pytest
from hypothesis import given, strategies as st

from alike import (
    FULL,
    OLLAMA,
    VLLM,
    Counted,
    Stamped,
    call,
    made,
    same_as_parsed,
    stamps,
    texts,
)
from crosswalk import (
    LimitError,
    Limits,
    ResponseDelta,
    registry,
    to_jsonable,
)
from crosswalk.errors import IncompleteStreamError
from crosswalk.mapping.interpreter import Said
from crosswalk.mapping.learnt.learning import learn
from crosswalk.mapping.learnt.template import Template
from crosswalk.mapping.learnt.templates import only_text
from crosswalk.mapping.reader import Reader, ReaderOptions, drain
from crosswalk.plugin.hookspecs import hookimpl
from crosswalk.plugin.mapper import Mapper
from crosswalk.plugin.take import prune
from crosswalk.plugins import (
    MappingState,
    ProviderInfo,
    take_string,
)
from crosswalk.types.json import dump_json
from crosswalk.wire.events import load_event
from wires import chunk, line, ndjson, registry_of, sse, usage


def template_of(frame: bytes, mapper: Mapper = VLLM) -> Template | None:
    """What is learnt from one frame."""
    event = load_event(frame)
    deltas = list(mapper.map_delta(event, mapper.new_state()) or ())
    prune(event, ())
    said: Said = deltas, None, event, {}
    text = only_text(said)
    return learn(frame, text, None, said, mapper) if text else None


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
    assert (template.says, template.choice, template.kept) == ("reasoning_delta", 2, {})
    stamped = template_of(orjson.dumps(line("Hello")), OLLAMA)
    assert stamped is not None
    assert (stamped.says, [*stamped.kept]) == ("content_delta", ["created_at"])


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
        ({"said": {"at": "1", "text": "Hello"}}, ("said.at",), False),  # it was taken
        ({"said": ["x"], "text": "Hello"}, ("said[0].at",), False),
    ],
)
def test_a_stamp_stands_at_the_top_before_or_behind_the_text(
    event: Any, stamps: tuple[str, ...], learnt: bool
) -> None:
    """A string or a number that stays; of another nothing is learnt, and all is parsed."""
    mapper = stamped(*stamps)
    delta = ResponseDelta(0, content_delta="Hello")
    left = {key: value for key, value in event.items() if key in stamps}
    template = learn(orjson.dumps(event), "Hello", None, ([delta], None, left, {}), mapper)
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


@pytest.mark.sweep
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
    assert learn(b'{"a":"Hello"}', "Hello", None, ([delta], None, {}, {}), mapper) is None


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


def test_names_that_change_in_one_read() -> None:
    frames = [b"event: %b\n" % name + sse(chunk({"content": "t "}), done=False) for name in (b"a", b"b") * 4]
    same_as_parsed([*frames[::2], *frames], VLLM)


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


def test_a_key_that_stands_everywhere_is_not_looked_for() -> None:
    event = {"choices": [{"delta": {"content": "Hello"}}], "more": [{"content": n} for n in range(70)]}
    assert template_of(orjson.dumps(event)) is None


def test_an_object_beside_the_text_may_become_something_else() -> None:
    frames = [dump_json({"said": {"text": f"t{n}"}, "usage": {"in": 1, "out": n}}) + b"\n" for n in range(6)]
    for other in (b"null", b"[]", b"{", b'{"in":1,"out":2},"usage":{"in":1,"out":4}', b"7"):
        odd = frames[4].replace(b'{"in":1,"out":4}', other)
        same_as_parsed([*frames[:4], odd, frames[5]], FULL)


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
