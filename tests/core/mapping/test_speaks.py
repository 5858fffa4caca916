"""A server that also answers in another provider's dialect: read by that provider's plugin, under the server's own id."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from crosswalk import (
    MappingError,
    Registry,
    ResponseDelta,
    UnknownEventError,
    detect,
    normalize,
    normalize_stream,
)
from crosswalk.mapping.detect import candidates
from crosswalk.plugins import MappingState, ProviderInfo, Recognition, hookimpl
from wires import sse


class Speaker:
    """A provider with events that carry their text under its own key."""

    def __init__(self, key: str, *speaks: str) -> None:
        self.key = key
        self.speaks = speaks

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        """Describe it."""
        return ProviderInfo(
            title=self.key, endpoints=(f"/{self.key}",), speaks=self.speaks, pieces=(f"{self.key}_list",)
        )

    @hookimpl
    def recognizes(self, event: Any) -> Recognition:
        """Know its own key."""
        return Recognition.CERTAIN if self.key in event else Recognition.NO

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> list[ResponseDelta]:
        """Read the text."""
        if self.key not in event:
            raise UnknownEventError("not mine", event_type=None)
        return [ResponseDelta(content_delta=event[self.key])]


def registry(*, block: str | None = None) -> Registry:
    known = Registry(installed=[], environ={})
    known.register(Speaker("own", "missing", "other"), "server")
    known.register(Speaker("other"), "other")
    if block:
        known.block(block)
    if block != "missing":
        known.register(Speaker("never"), "missing")
    return known


def test_the_first_event_decides_who_reads() -> None:
    """A stream in the other's dialect is read to its end by the other, and is the server's answer."""
    stream = sse({"other": "a", "other_list": [1]}, {"other": "b", "other_list": [1]})
    response = normalize(stream, "server", registry=registry())
    assert (response.text, response.metadata.provider_id) == ("ab", "server")
    assert response.metadata.extensions["other_list"] == (1, 1)  # the pieces of the other's info are joined
    assert normalize({"own": "a"}, "server", registry=registry()).text == "a"


def test_one_stream_is_in_one_dialect() -> None:
    """Events that the chosen dialect does not know stay unknown, and are named with the server."""
    stream = normalize_stream([sse({"other": "a"}, {"own": "b"})], "server", registry=registry())
    with pytest.raises(MappingError, match="server, event 2: not mine") as caught:
        list(stream)
    assert caught.value.partial is not None
    assert caught.value.partial.text == "a"


def test_an_event_that_says_nothing_decides_nothing() -> None:
    """A keep-alive before the answer has no provider. The first known event decides."""
    stream = sse({"ping": 1}, {"other": "a"})
    response = normalize(stream, "server", registry=registry(), unknown="keep")
    assert (response.text, response.metadata.extensions) == ("a", {"ping": 1, "other": "a"})


def test_what_nobody_recognizes_is_the_servers_own() -> None:
    with pytest.raises(UnknownEventError, match="server, event 1"):
        normalize({"x": 1}, "server", registry=registry())


def test_a_dialect_that_is_blocked_is_not_read() -> None:
    """The others still are, and so are the server's own answers."""
    known = registry(block="other")
    assert normalize({"own": "a"}, "server", registry=known).text == "a"
    assert normalize({"never": "a"}, "server", registry=known).text == "a"
    with pytest.raises(UnknownEventError):
        normalize({"other": "a"}, "server", registry=known)


def test_endpoints_include_those_of_the_dialects() -> None:
    assert registry().mapper("server").endpoints() == ("/own", "/never", "/other")
    assert registry(block="missing").mapper("server").endpoints() == ("/own", "/other")
    assert registry().mapper("other").endpoints() == ("/other",)


def test_a_mapper_without_a_registry_knows_only_its_own() -> None:
    """A program that resolved a plugin by hand gets no other's dialects."""
    alone = attrs.evolve(registry().mapper("server"), lookup=None)
    assert alone.endpoints() == ("/own",)
    assert alone.dialect_of({"other": "a"}) is None


def test_one_mapper_reads_all_answers_in_a_dialect() -> None:
    """So what is learnt of one answer serves the next, until the dialect's provider is registered anew."""
    known = registry()
    server = known.mapper("server")
    reader = server.dialect_of({"other": "a"})
    assert reader is not None
    assert reader.provider == "server"
    assert server.dialect_of({"other": "b"}) is reader
    known.register(Speaker("other"), "other")
    assert server.dialect_of({"other": "b"}) is not reader


def test_a_speaker_is_a_candidate_but_no_more() -> None:
    """A plugin that recognizes the dialect itself comes first. The servers that speak it are possible."""
    known = registry()
    assert candidates([{"other": "a"}], known) == {
        "other": Recognition.CERTAIN,
        "server": Recognition.POSSIBLE,
    }
    assert detect([{"other": "a"}], known) == "other"
