"""Many events of one kind are read at once: the same as parsing each, wherever a read ends and whoever looks in the middle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest
from hypothesis import given, strategies as st

from alike import FULL, OLLAMA, TOKENS, VLLM, Counted, Full, call, made, same_as_parsed
from crosswalk import CrosswalkError, ResponseDelta, TokenLogprob, to_jsonable
from crosswalk.mapping.learnt.template import Template
from crosswalk.mapping.reader import Reader, ReaderOptions
from crosswalk.plugin.hookspecs import hookimpl
from crosswalk.plugin.mapper import Mapper
from crosswalk.plugins import ProviderInfo
from crosswalk.types.json import dump_json
from wires import CLOCK, chunk, line, ndjson, registry_of, sse, usage


def test_a_read_that_nobody_has_read_to_its_end_is_told_as_far_as_it_was() -> None:
    """What was handed out counts, the rest of that read does not."""
    frames = [ndjson(line(f"{n} ")) for n in range(20)]
    reading = Reader(OLLAMA, ReaderOptions(id_factory=lambda: "made", clock=CLOCK))
    list(reading.read(b"".join(frames[:4])))
    deltas = iter(reading.read(b"".join(frames[4:12])))
    assert [next(deltas).content_delta for _ in range(3)] == ["4 ", "5 ", "6 "]
    assert reading.partial("now").text == "0 1 2 3 4 5 6 "
    assert reading.last_event()["message"]["content"] == "6 "
    del deltas
    for data in frames[12:15]:
        list(reading.read(data))
    assert reading.partial("now").text == "0 1 2 3 4 5 6 12 13 14 "


KINDS = (
    "text", "reasoning", "arguments", "odd", "named", "stamps", "numbers", "numbered", "counted", "weighed", "choices",
    "choices and counts",
)  # fmt: skip


def weighed(n: int) -> dict[str, Any]:
    """Two tokens: of the second the log probability may be a whole number."""
    token = {"token": f"{n}", "logprob": -0.5 * n, "bytes": [n % 256]}
    return {"tokens": [token, {"token": "!", "logprob": -n, "bytes": [33, n % 7]}]}


def events_of(kind: str, count: int = 270) -> tuple[Mapper, list[bytes]]:
    """Alike events of a kind, with some among them that are not."""
    if kind == "stamps":
        return OLLAMA, [
            ndjson(line(f"{n} ", created_at=f"at {n // 2 * 2 if n < 40 else n}")) for n in range(count)
        ]
    if kind == "numbers":
        mapper = registry_of(counted=Counted()).mapper("counted")
        return mapper, [
            dump_json({"n": n // 2, "said": {"text": f"{n} "}, "at": f"{n}"}) + b"\n" for n in range(count)
        ]
    if kind == "numbered":
        return FULL, [
            dump_json({"n": n + (n > 240), "at": 1, "said": {"text": f"{n}!"}}) + b"\n"
            for n in range(1, count)
        ]
    if kind in ("counted", "weighed"):
        beside = {"counted": lambda n: {"usage": {"in": 1, "out": n}}, "weighed": weighed}[kind]
        return FULL, [dump_json({"said": {"text": f"{n}!"}, **beside(n)}) + b"\n" for n in range(count)]
    if kind.startswith("choices"):
        beside = {"choices": lambda n: {}, "choices and counts": lambda n: {"usage": usage(1, n)}}[kind]
        return VLLM, [
            sse({**chunk({"content": f"{n} "}, choice=n * n % 5), **beside(n)}, done=False)
            for n in range(count)
        ]
    said = {
        "text": lambda n: {"content": f"{n} "},
        "reasoning": lambda n: {"reasoning": f"{n} "},
        "arguments": lambda n: {"tool_calls": [{"index": 0, "function": {"arguments": f"{n} "}}]},
        "odd": lambda n: {"content": f"{n} " if n % 90 else 7},
        "named": lambda n: {"content": f"{n} "},
    }[kind]
    name = b"event: x\n" if kind == "named" else b""
    start = [call("", name="go")] if kind == "arguments" else []
    return VLLM, [*start, *(name + sse(chunk(said(n)), done=False) for n in range(count))]


@pytest.mark.sweep
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("raw", [True, False])
@pytest.mark.parametrize("live", [True, False])
def test_many_alike_are_read_as_if_parsed(parsed: list[bytes], kind: str, raw: bool, live: bool) -> None:
    """What was handed out in the middle of a read is in the answer then, and nothing else."""
    mapper, frames = events_of(kind)
    data, results = b"".join(frames), []
    for one in (mapper, attrs.evolve(mapper, is_plain=False)):
        reading = Reader(one, ReaderOptions(id_factory=lambda: "made", clock=CLOCK, keep_raw=raw))
        deltas: list[ResponseDelta] = []
        shown: list[Any] = []
        try:
            for piece in frames if live else [data[n : n + 3000] for n in range(0, len(data), 3000)]:
                for delta in reading.read(piece):
                    deltas.append(delta)
                    if len(deltas) % 29 == 4:
                        shown.append((to_jsonable(reading.partial("now")), reading.last_event()))
        except CrosswalkError as error:
            shown.append(str(error))
        partial = reading.partial("now")
        results.append((to_jsonable(deltas), shown, to_jsonable(partial), partial.raw_events.frames))
        parsed.append(b"")
    assert results[0] == results[1]
    assert parsed.index(b"") <= (140 if kind in ("odd", "numbered") else 6)


@pytest.mark.sweep
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("raw", [True, False])
def test_an_answer_is_the_same_where_nobody_asks_for_deltas(kind: str, raw: bool) -> None:
    """Whatever comes in a read: the answer so far, its bytes and the error are those of reading delta by delta."""
    mapper, frames = events_of(kind)
    data = b"".join(frames)
    options = ReaderOptions(id_factory=lambda: "made", clock=CLOCK, keep_raw=raw)
    shown, silent = Reader(mapper, options), Reader(mapper, options, shows=False)
    count = 0
    for start in range(0, len(data), 3000):
        found = []
        for reading in (shown, silent):
            error, deltas = "", list[ResponseDelta]()
            try:
                deltas = list(reading.read(data[start : start + 3000]))
            except CrosswalkError as caught:
                error = str(caught)
            count += len(deltas) if reading is silent else 0
            partial = reading.partial("now")
            found.append((error, to_jsonable(partial), partial.raw_events.frames, reading.last_event()))
        assert found[0] == found[1]
        if found[0][0]:
            break
    if kind not in ("odd", "numbers", "numbered"):  # of these hardly any read is all alike
        assert count < len(frames) / 2, "nobody has asked for so many"


@pytest.mark.sweep
@pytest.mark.parametrize(
    "broken",
    [
        b'{"at":"x","said":{"text":7}}',
        b'{"at":"x","said":{"text":""}}',
        b'{"at":7,"said":{"text":"t"}}',
        b'{"at":"x" "y","said":{"text":"t"}}',
        b'{"at":"x","say":{"text":"t"}}',
        b'{"at":"x"}}',
        b'{"at":"x","said":{"text":"\xff"}}',
        b'{"at":"x","said":{"text":"t"},"usage":[]}',
    ],
)
@pytest.mark.parametrize("beside", [{}, {"usage": {"in": 1, "out": 2}}, {"tokens": TOKENS}])
def test_one_of_many_that_is_unlike_is_parsed(broken: bytes, beside: dict[str, Any]) -> None:
    frames = [dump_json({"at": f"{n}", "said": {"text": f"t{n}"}, **beside}) + b"\n" for n in range(30)]
    if beside and b"usage" not in broken:
        broken = broken[:-1] + b"," + dump_json(beside)[1:]
    same_as_parsed([*frames[:15], broken + b"\n", *frames[15:]], FULL)


BITS = (
    b'"', b",", b":", b" ", b"0", b"1", b"-1", b"-2", b"[", b"]", b"],[", b"],\n[", b",\n", b",\n-1,\n", b"\\", b"\r",
    b"\ndata: ", b"\n\ndata: ", b"null", b"-", b"e1", b"{", b"}", b"\xff", b"\\ud800", b"%b", b"99999999999999999999",
)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_what_looks_like_the_bytes_around_a_value_is_read_as_if_parsed(
    kind: str, data: st.DataObject
) -> None:
    """Neither in one event nor over several of them: also where one has a comma too many and another one too few."""
    mapper, frames = events_of(kind, 16)
    for _ in range(data.draw(st.integers(1, 3))):
        number = data.draw(st.integers(4, len(frames) - 1))
        frame = frames[number]
        bits = st.sampled_from(BITS) | st.builds(
            lambda start, size: frame[start : start + size],
            st.integers(0, len(frame)),
            st.integers(1, 60),
        )
        put = b"".join(data.draw(st.lists(bits, max_size=4)))
        start = data.draw(st.integers(0, len(frame)))
        frames[number] = frame[:start] + put + frame[start + data.draw(st.integers(0, 40)) :]
    same_as_parsed(frames, mapper)


@pytest.mark.parametrize("place", ["index", "text"])
def test_the_number_of_a_choice_may_stand_anywhere(
    parsed: list[bytes], one_by_one: list[Template], place: str
) -> None:
    """And nearly all events are read at once."""

    def event(n: int) -> bytes:
        pairs = {"index": n % 3, "delta": {"content": f"{n} "}, "logprobs": None}
        keys = ["index", "delta"] if place == "index" else ["delta", "index"]
        return sse({**chunk({}), "choices": [{key: pairs[key] for key in (*keys, "logprobs")}]}, done=False)

    frames = [event(n) for n in range(60)]
    ends = [sse(chunk({}, "stop", choice=n), done=False) for n in range(3)]
    response = same_as_parsed([*frames, *ends], VLLM)
    assert response[1]["message"]["content"] == "".join(f"{n} " for n in range(0, 60, 3))
    parsed.clear()
    one_by_one.clear()
    made([b"".join([*frames, *ends])], VLLM, shows=False)
    assert len(parsed) == 6
    assert len(one_by_one) == 1


@pytest.mark.parametrize(
    "more",
    [
        {"delta": {"role": "assistant"}},
        {"token_ids": None},
    ],
)
def test_choices_that_differ_in_more_than_their_number_are_read_apart(
    parsed: list[bytes], more: dict[str, Any]
) -> None:
    def event(n: int) -> bytes:
        said = chunk({"content": f"{n} "}, choice=n % 2)
        if n % 2:
            (choice,) = said["choices"]
            choice |= {**more, "delta": more.get("delta", {}) | choice["delta"]}
        return sse(said, done=False)

    frames = [*map(event, range(40)), sse(chunk({}, "stop"), chunk({}, "stop", choice=1))]
    same_as_parsed(frames, VLLM)
    parsed.clear()
    made([b"".join(frames)], VLLM)
    assert len(parsed) <= 5


def test_a_choice_that_was_not_there_before_is_parsed() -> None:
    choices = [0, 1] * 6 + [2] + [0, 1, 2] * 6
    frames = [sse(chunk({"content": f"{n} "}, choice=c), done=False) for n, c in enumerate(choices)]
    response = same_as_parsed(
        [*frames, *(sse(chunk({}, "stop", choice=n), done=False) for n in range(3))], VLLM
    )
    assert response[1]["alternatives"][1]["message"]["content"].startswith("12 ")


class Listed(Full):
    """A provider whose log probabilities are lists, and whose events carry several times."""

    leaves_hold = True

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        """Promise what can be promised."""
        return ProviderInfo(
            title="Listed",
            text_leaves=("said.text",),
            stamp_leaves=("at", "by", "text"),
            logprob_leaves={"raw": self.bytes_of, "pairs": self.pair_of},
        )

    def tokens(self, holder: dict[str, Any], text: str | None) -> tuple[TokenLogprob, ...] | None:
        """Either of the two."""
        return self.bytes_of(holder, text) if "raw" in holder else self.pair_of(holder, text)

    def bytes_of(self, holder: dict[str, Any], text: str | None) -> tuple[TokenLogprob, ...] | None:
        """The bytes of a token that is surely what it is."""
        said = holder.pop("raw", None)
        if said is None:
            return None
        likely = (TokenLogprob(token=key, logprob=float(said[key])) for key in ("p", "q") if key in said)
        return (TokenLogprob(token="any", logprob=0.0, bytes=bytes(said.get("b", ()))), *likely)

    def pair_of(self, holder: dict[str, Any], text: str | None) -> tuple[TokenLogprob, ...] | None:
        """A token and how likely it is."""
        said = holder.pop("pairs", None)
        return (
            None
            if said is None
            else tuple([TokenLogprob(token=one, logprob=float(two)) for one, two in said])
        )


LISTED = registry_of(listed=Listed()).mapper("listed")


def in_the_middle(event: Callable[[int], Any], *odd: bytes) -> list[bytes]:
    """Events, one a line, with *odd* ones among them."""
    frames = [dump_json(event(n)) for n in range(30)]
    return [frame + b"\n" for frame in (*frames[:20], *odd, *frames[20:])]


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("event", "odd"),
    [
        # The literal between them is missing: no JSON.
        (lambda n: {"at": f"{n}", "said": {"text": f"t{n}"}}, [b'{"at":"20","t20"}}']),
        (lambda n: {"at": f"a{n}", "by": f"b{n}", "said": {"text": f"t{n}"}}, [b'{"at":"20",-1,"20",-2,"t20"}}', b'{"at":"20",-2,"20",-1,"t20"}}']),
        # One comma too many, and one too few.
        (lambda n: {"said": {"text": f"t{n}"}}, [b'{"said":{"text":"a","b"}}']),
        (
            lambda n: {"at": f"{n}", "said": {"text": f"t{n}"}},
            [b'{"at":"20","said":{"text":"t20"],["x","y"}}'],
        ),
        # Other values: the same literals in another order, or a list cut in two by one.
        (
            lambda n: {"at": f"a{n}", "by": f"b{n}", "said": {"text": f"t{n}"}},
            [b'{"at":"20","said":{"text":"a","by":"b"}}'],
        ),
        (
            lambda n: {"at": f"a{n}", "by": f"b{n}", "text": f"c{n}", "said": {"text": f"t{n}"}},
            [b'{"at":"20","text":"a","by":"b","said":{"text":"t20"}}'],
        ),
        (
            lambda n: {"said": {"text": f"t{n}"}, "raw": {"b": [n, 7]}},
            [b'{"said":{"text":"t",-1,[1,2]}}', b'{"said":{"text":"t"},"raw":{"b":[1},"raw":{"b":2]}}'],
        ),
        *(
            (
                lambda n: {"said": {"text": f"t{n}"}, "tokens": [{"token": f"u{n}", "logprob": -n, "bytes": [n, 7]}]},
                [b'{"said":{"text":"true"},"tokens":[{"token":"false","logprob":-1,"bytes":[1,%b]}]}' % odd],
            )
            for odd in (b"true", b"false", b"2")
        ),
        (lambda n: {"said": {"text": f"t{n}"}, "raw": {"p": -n}}, [
            b'{"said":{"text":"t",-1}}', b'{"said":{"text":"t"},"raw":{"p":-1,-2}}', b'{"said":{"text":"t"},"raw":{"p":"1"}}',
        ]),
        (
            lambda n: {"said": {"text": f"t{n}"}, "raw": {"b": [n, 7]}},
            [b'{"said":{"text":"t",0,[1,2]}}', b'{"said":{"text":"t"},"raw":{"b":[1},"raw":{"b":2]}}'],
        ),
        (lambda n: {"said": {"text": f"t{n}"}, "raw": {"p": -n, "q": -n - 1}}, [b'{"said":{"text":"t"},"raw":{"q":-1,"p":-2}}']),
        (lambda n: {"said": {"text": f"t{n}"}, "raw": {"p": -n, "q": -n - 1}}, [b'{"said":{"text":"t","q":-1},"raw":{"p":-2}}']),
        # Counts that a hook takes for none.
        (lambda n: {"said": {"text": f"{n}"}, "usage": {"in": n, "out": n}}, [
            b'{"said":{"text":"t"},"usage":{"in":-1,"out":5}}'
        ]),
        (lambda n: {"said": {"text": f"{n}"}, "usage": {"in": n, "out": n}}, [
            b'{"said":{"text":"t"},"usage":{"in":1,"out":9007199254740993}}'
        ]),
    ],
)  # fmt: skip
def test_what_would_have_the_same_values_is_read_as_if_parsed(
    event: Callable[[int], Any], odd: list[bytes]
) -> None:
    for mapper in (FULL, LISTED):
        same_as_parsed(in_the_middle(event, *odd), mapper)


def test_a_literal_may_stand_in_another(parsed: list[bytes]) -> None:
    """The longer one is looked for first."""

    def event(n: int) -> Any:
        return {"at": f"a{n}", "by": f"b{n}", "text": f"c{n}", "said": {"x": 0, "text": f"t{n}"}}

    same_as_parsed(in_the_middle(event), LISTED)
    parsed.clear()
    made(in_the_middle(event), LISTED)
    assert len(parsed) == 1


def test_a_comma_alone_may_stand_between_two_values() -> None:
    same_as_parsed(
        in_the_middle(lambda n: {"said": {"text": f"{n} "}, "pairs": [[f"p{n}", -0.5 * n]]}), LISTED
    )
