"""Installing a plugin never changes the provider of an answer that was known without it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import pytest

from crosswalk import DetectionError, Registry, UsageInfo, detect, normalize
from crosswalk.mapping.detect import decode_events
from crosswalk.plugins import MappingState, OpenAIChatDialect, Recognition, ResponseDelta, hookimpl
from crosswalk.testing import load_captures
from crosswalk.wire.framing import DEFAULT
from pages import ROOT
from wires import body


class Stranger:
    """A plugin that recognizes as it is set to."""

    def __init__(self, recognizes: Callable[[Any], Any]) -> None:
        self._recognizes = recognizes

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        return [ResponseDelta(content_delta=str(event))]

    @hookimpl
    def recognizes(self, event: Any) -> Any:
        return self._recognizes(event)


class Reader:
    """An override that reads every event as its text."""

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        text = str(event)
        event.clear()
        return [ResponseDelta(content_delta=text, raw_finish_reason="stop")]


class Claimer(Reader):
    """The same, and certain of every event."""

    @hookimpl
    def recognizes(self, event: Any) -> Recognition:
        return Recognition.CERTAIN


class Tern(OpenAIChatDialect):
    """A look-alike that counts otherwise, and sets a mark."""

    title = "Tern"
    marks = ("x_tern",)

    def usage_info(self, usage: dict[str, Any], state: MappingState) -> UsageInfo | None:
        found = super().usage_info(usage, state)
        return found and found + UsageInfo(0, 1)


def fail(_: Any) -> Any:
    raise KeyError("odd")


def leave(_: Any) -> Any:
    raise SystemExit(3)


def deep(event: Any) -> Any:
    return deep(event)


def slow(_: Any) -> Any:
    return Recognition(sum(1 for _ in range(3_000)) > 0)


STRANGERS: dict[str, tuple[str, Any]] = {
    "always possible": ("stranger", Stranger(lambda _: Recognition.POSSIBLE)),
    "always certain": ("stranger", Stranger(lambda _: Recognition.CERTAIN)),
    "certain of every chat": ("stranger", Stranger(lambda e: Recognition.CERTAIN if "choices" in e else None)),
    "certain of every model": ("stranger", Stranger(lambda e: Recognition.CERTAIN if "model" in e else None)),
    "raising": ("stranger", Stranger(fail)),
    "leaving": ("stranger", Stranger(leave)),
    "endless": ("stranger", Stranger(deep)),
    "slow": ("stranger", Stranger(slow)),
    "answers nonsense": ("stranger", Stranger(lambda _: "certain")),
    "a look-alike": ("tern", Tern()),
    "an override that is certain": ("vllm", Stranger(lambda _: Recognition.CERTAIN)),
    "an override that knows nothing": ("openai", Stranger(lambda _: Recognition.NO)),
}  # fmt: skip


def detected(events: list[Any], registry: Registry) -> str:
    try:
        return detect(events, registry)
    except DetectionError as error:
        return str(error.candidates)


@cache
def usual() -> list[tuple[str, list[Any], str]]:
    """The captures, and the provider of each without a third party's plugin."""
    registry, found = Registry(environ={}), []
    for folder in sorted((ROOT / "tests/captures").iterdir()):
        for capture in load_captures(folder) if folder.is_dir() else ():
            events = list(decode_events(capture.body, DEFAULT))
            found.append((f"{folder.name}/{capture.case}", events, detected(events, registry)))
    return found


@pytest.mark.sweep
@pytest.mark.parametrize(("name", "plugin"), STRANGERS.values(), ids=STRANGERS)
def test_whose_an_answer_is_stays(name: str, plugin: Any) -> None:
    registry = Registry(environ={})
    registry.register(plugin, name)
    known = [one for one in usual() if one[2] != "()"]  # what nobody recognized may become the stranger's
    changed = [case for case, events, before in known if detected(events, registry) != before]
    assert (changed, len(known) > 400) == ([], True)


def test_a_plugin_is_detected_by_its_own_mark() -> None:
    """Which a shipped provider that may have sent the answer does not know. Without the mark it stays the others'."""
    registry = Registry(environ={})
    registry.register(Tern(), "tern")
    whole = body({"role": "assistant", "content": "Hi"}, "stop")
    assert detect([{**whole, "x_tern": 1}], registry) == "tern"
    assert normalize(whole, registry=registry).metadata.provider_id == "openai"


def test_an_override_that_reads_otherwise_reads_its_own_answers_alone() -> None:
    """An answer that several may have sent is read as before. The override reads it only as the provider that it overrides."""
    whole = body({"role": "assistant", "content": "Hi"}, "stop")
    for name, text in (("vllm", "Hi"), ("openai", str(whole))):
        registry = Registry(environ={})
        registry.register(Reader(), name)
        response = normalize(whole, registry=registry)
        assert (response.metadata.provider_id, response.text) == ("openai", text)


@pytest.mark.parametrize(
    ("name", "override", "text"),
    [
        ("anthropic", Claimer(), "Hi"),
        ("openai_responses", Reader(), None),
    ],
)
def test_an_override_of_a_dialect_does_not_make_the_servers_that_speak_it_disagree(
    name: str, override: Any, text: str | None
) -> None:
    message = {
        "type": "message",
        "id": "m",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Hi"}],
    }
    whole = {
        "id": "r",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "status": "completed",
        "output": [message],
    }
    registry = Registry(environ={})
    registry.register(override, name)
    response = normalize(whole, registry=registry)
    wanted = ("openai_responses", str(whole) if text is None else text)
    assert (response.metadata.provider_id, response.text) == wanted


def test_an_override_of_a_dialect_does_not_claim_the_answers_of_servers_that_speak_it() -> None:
    """Other servers' answers in the dialect are recognized as shipped, and read by the override."""
    registry = Registry(environ={})
    registry.register(Claimer(), "anthropic")
    whole = {
        "message": {"role": "assistant", "content": "Hi"},
        "done": True,
        "done_reason": "stop",
        "model": "m",
    }
    assert normalize([{"ping": 1}, whole], "ollama", unknown="keep", registry=registry).text == "Hi"
    theirs = {"type": "message_start", "message": {}}
    assert normalize(theirs, "ollama", registry=registry).text == str(theirs)


def test_an_override_may_recognize_more() -> None:
    registry = Registry(environ={})
    mark = Stranger(lambda event: Recognition.CERTAIN if "x_fork" in event else None)
    registry.register(mark, "vllm")
    whole = body({"role": "assistant", "content": "Hi"}, "stop")
    assert detect([{**whole, "x_fork": 1}], registry) == "vllm"


def test_what_nobody_else_recognizes_is_a_plugins() -> None:
    registry = Registry(environ={})
    registry.register(Stranger(lambda event: Recognition.POSSIBLE if "own" in event else None), "own")
    assert detect([{"own": 1}], registry) == "own"


def test_a_plugin_may_wrap_the_answers_of_others() -> None:
    """A shipped provider never takes such a line, and a plugin for a server that answers so does."""
    registry, wrapped = Registry(environ={}), {"output": body({"role": "assistant", "content": "Hi"}, "stop")}
    wrapped["output"]["object"] = "chat.completion"
    with pytest.raises(DetectionError, match="there is an answer under 'output'"):
        detect([wrapped], registry)
    registry.register(Stranger(lambda event: Recognition.CERTAIN if "output" in event else None), "stranger")
    assert detect([wrapped], registry) == "stranger"
