"""A service reads whole bodies by their likeness to one before, as ``normalize`` does, and gives the same."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import orjson
import pytest

from crosswalk import ChatResponse, Limits, Registry, normalize, to_jsonable
from crosswalk.errors import ErrorInfo, ErrorKind, StreamTooLargeError
from crosswalk.mapping.bodies import shapes_of
from crosswalk.mapping.reader import Reader, ReaderOptions, drain
from crosswalk.plugin.hookspecs import hookimpl
from crosswalk.plugin.registry import registry
from crosswalk.service import ChatRequest, Endpoint, LLMService
from crosswalk.testing.replay import Answer, ReplayServer
from wires import CLOCK, body, line, usage

Make = Callable[..., LLMService]
ASK = ChatRequest("hi")
KEY = "corp-hunter2-0815"


class Around:
    """Looks at each event, and changes nothing: but for bodies to be read in the general way."""

    @hookimpl(wrapper=True)
    def map_delta(self) -> Iterator[None]:
        return (yield)


def bodies(text: str) -> list[dict[str, Any]]:
    whole = body({"content": text}, usage=usage(3, 2), id="chatcmpl-1", created=1795168361)
    nameless = {name: value for name, value in whole.items() if name not in ("id", "created")}
    return [
        whole,
        nameless,
        body({"content": text}, id=f"of-{KEY}"),
        line(text, done="stop", total_duration=99),
    ]


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The bodies that were read by their likeness."""
    found: list[bytes] = []
    take = Reader.take

    def noting(self: Reader, response: ChatResponse, answer: bytes) -> None:
        found.append(answer)
        take(self, response, answer)

    monkeypatch.setattr(Reader, "take", noting)
    return found


def ask(service: LLMService, times: int, request: ChatRequest = ASK) -> list[ChatResponse]:
    async def run() -> list[ChatResponse]:
        async with service:
            return [await service.complete(request) for _ in range(times)]

    return asyncio.run(run())


@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize("keep_raw", [True, False])
def test_it_is_what_the_general_way_makes_of_it(
    server: ReplayServer, service_of: Make, taken: list[bytes], number: int, keep_raw: bool
) -> None:
    """Ids, times, durations, what is noted and what is hidden: all but the work is the same."""
    provider = "ollama" if number == 3 else "vllm"
    said = [bodies(text)[number] for text in ("One.", "Two.", 'Three, "four".\n', "Fünf")]

    def answers(known: Registry) -> list[Any]:
        for one in said:
            server.add(Answer.of_json(one))
        ids = iter(range(9))
        endpoint = Endpoint(provider, model="m", base_url=server.url, api_key=KEY)
        options = {"registry": known, "keep_raw": keep_raw, "timer": lambda: 5.0, "clock": CLOCK}
        found = ask(service_of(endpoint, id_factory=lambda: f"made-{next(ids)}", **options), len(said))
        return [to_jsonable(response) for response in found]

    wrapped = Registry()
    wrapped.register(Around(), provider)
    general = answers(wrapped)
    assert taken == []
    assert answers(Registry()) == general
    assert len(taken) == 2  # the third and the fourth; two are what it learns of
    assert KEY not in repr(general)


def test_an_odd_id_is_made_once(server: ReplayServer, service_of: Make, taken: list[bytes]) -> None:
    """The general way has the one that was made."""
    server.add(Answer.of_json(bodies("Hi")[1]), times=4)
    ids = iter(range(9))
    found = ask(service_of(server, registry=Registry(), id_factory=lambda: f"é{next(ids)}"), 4)
    assert ([response.id for response in found], taken) == (["é0", "é1", "é2", "é3"], [])


@pytest.mark.parametrize(
    ("options", "request_"),
    [
        ({"limits": Limits(events=7)}, ASK),
        ({"limits": Limits(depth=7)}, ASK),
        ({}, ChatRequest("hi", stream=True)),
    ],
)
def test_what_is_asked_for_otherwise_is_read_in_the_general_way(
    server: ReplayServer, service_of: Make, taken: list[bytes], options: dict[str, Any], request_: ChatRequest
) -> None:
    server.add(Answer.of_json(bodies("Hi")[0]), times=4)
    found = ask(service_of(server, registry=Registry(), **options), 4, request_)
    assert ({response.text for response in found}, taken) == ({"Hi"}, [])


def test_limits_of_length_alone_are_no_reason_for_the_general_way(
    server: ReplayServer, service_of: Make, taken: list[bytes]
) -> None:
    """What is longer is refused all the same."""
    known, short = Registry(), orjson.dumps(bodies("Hi")[0])
    for _ in range(3):
        server.add(Answer.of_json(bodies("Hi")[0]))
    server.add(Answer.of_json(bodies("Hi there")[0]))
    limits = Limits(line_bytes=len(short), total_bytes=len(short))

    async def run() -> None:
        async with service_of(server, registry=known, limits=limits) as service:
            for _ in range(3):
                assert (await service.complete(ASK)).text == "Hi"
            with pytest.raises(StreamTooLargeError):
                await service.complete(ASK)

    asyncio.run(run())
    assert taken == [short]


def test_one_memory_serves_both(server: ReplayServer, service_of: Make, taken: list[bytes]) -> None:
    """What ``normalize`` has learnt of a provider's bodies, the service knows too."""
    known = Registry()
    for _ in range(2):
        server.add(Answer.of_json(bodies("Hi")[0]))
    ask(service_of(server, registry=known), 2)
    data = orjson.dumps(bodies("Yes?")[0])
    found = shapes_of(known.mapper("vllm")).read(data, lambda: "", CLOCK, True)
    assert found == normalize(data, "vllm", registry=known)
    assert found is not None
    assert found.text == "Yes?"


def test_what_it_says_is_kept_where_the_answer_is_taken_for_a_failure() -> None:
    """The bytes are then read after all."""
    data = orjson.dumps(bodies("Hi")[0])
    reader = Reader(registry.mapper("vllm"), ReaderOptions())
    reader.take(normalize(data, "vllm"), data)
    assert reader.has_ended
    assert list(reader.finish()) == []
    assert reader.response() == normalize(data, "vllm")
    partial = reader.partial(ErrorInfo(ErrorKind.UNKNOWN, "cancelled"))
    general = Reader(registry.mapper("vllm"), ReaderOptions())
    drain(general.read_whole(data))
    assert partial == general.partial(ErrorInfo(ErrorKind.UNKNOWN, "cancelled"))
    assert "Hi" in partial.text


@pytest.mark.parametrize("timings", [{}, {"timings": {"prompt_ms": 2.5, "predicted_ms": 5.5}}])
def test_where_a_duration_comes_from_is_noted_alike(timings: dict[str, Any]) -> None:
    """The server may have measured one, too."""
    data = orjson.dumps({**bodies("Hi")[0], **timings})
    options, mapper = ReaderOptions(timer=itertools.count().__next__), registry.mapper("llamacpp")
    taken, general = Reader(mapper, options), Reader(mapper, options)
    taken.take(normalize(data, "llamacpp"), data)
    drain(general.read_whole(data))
    drain(general.finish())
    assert taken.response().metadata.provenance == general.response().metadata.provenance
