"""What a class declares as leaves is not inherited by one that reads otherwise and does not say that it holds."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import attrs
import pytest

from crosswalk import normalize, normalize_stream
from crosswalk.plugin.registry import Registry
from crosswalk.plugins import (
    DialectFamily,
    MappingState,
    OpenAIChatDialect,
    ProviderInfo,
    ResponseDelta,
    hookimpl,
)
from crosswalk_ollama import NativeDialect, Ollama, OpenAILayer

SECRET = "4711"
TEXTS = ["My ", "card ", "is ", *["so "] * 30, SECRET, " and ", SECRET, "."]


class Hiding:
    """Any plugin that gives texts without their secrets."""

    def map_delta(self, event: Any, state: MappingState) -> Iterator[ResponseDelta]:
        """Read the event without the secret."""
        for choice in event.get("choices", ()):
            said = choice.get("delta") or choice.get("message")
            if said and said.get("content"):
                said["content"] = said["content"].replace(SECRET, "****")
        yield from super().map_delta(event, state)  # type: ignore[misc]


class HidingDialect(Hiding, OpenAIChatDialect):
    """One that says nothing of leaves, so that its base's are none of its."""


class HidingByChoice(OpenAIChatDialect):
    """The same, by a method of the dialect that is no hook."""

    def choice_deltas(
        self, choice: dict[str, Any], part: dict[str, Any], index: int, state: MappingState, *, whole: bool
    ) -> Iterable[ResponseDelta]:
        """Read the choice without the secret."""
        part["content"] = (part.get("content") or "").replace(SECRET, "****") or None
        return super().choice_deltas(choice, part, index, state, whole=whole)


class HidingBelow(HidingByChoice):
    """One that overrides nothing that reads, on top of one that does."""

    title = "Hiding"
    leaves_hold: ClassVar[bool] = True


def _chunk(text: str) -> bytes:
    chunk = {
        "id": "c",
        "object": "chat.completion.chunk",
        "choices": [{"index": 0, "delta": {"content": text}}],
    }
    return b"data: %b\n\n" % json.dumps(chunk).encode()


def _end() -> bytes:
    return b'data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'


def hide(
    self: Any, choice: dict[str, Any], part: dict[str, Any], index: int, state: MappingState, *, whole: bool
) -> Iterable[ResponseDelta]:
    """What reads a choice without the secret."""
    part["content"] = (part.get("content") or "").replace(SECRET, "****") or None
    return OpenAIChatDialect.choice_deltas(self, choice, part, index, state, whole=whole)


class ByPartial(OpenAIChatDialect):
    choice_deltas = functools.partialmethod(hide)  # type: ignore[assignment]


class ByAttribute(OpenAIChatDialect):
    def __init__(self) -> None:
        self.choice_deltas = functools.partial(hide, self)  # type: ignore[method-assign]


class BySlot(OpenAIChatDialect):
    __slots__ = ("choice_deltas",)

    def __init__(self) -> None:
        self.choice_deltas = functools.partial(hide, self)  # type: ignore[method-assign]


class ByProperty(OpenAIChatDialect):
    @functools.cached_property
    def choice_deltas(self) -> Any:  # type: ignore[override]
        return functools.partial(hide, self)


class Decorated:
    """What a decorator may make of a method."""

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        return self if owner is None else functools.partial(hide, owner)


class ByDecorator(OpenAIChatDialect):
    choice_deltas = Decorated()  # type: ignore[assignment]


class ByAnotherName(OpenAIChatDialect):
    @hookimpl(specname="map_delta", tryfirst=True)
    def redacted(self, event: Any, state: MappingState) -> None:
        for choice in event.get("choices", ()):
            said = choice.get("delta") or choice.get("message") or {}
            if said.get("content"):
                said["content"] = said["content"].replace(SECRET, "****")


class Titled:
    @hookimpl
    def provider_info(self) -> ProviderInfo:
        return attrs.evolve(super().provider_info(), title="Mine")  # type: ignore[misc]


class Below(Titled, HidingByChoice):
    """Its leaves are passed on from below the class that overrides."""


class Both(HidingByChoice):
    @hookimpl
    def provider_info(self) -> ProviderInfo:
        return attrs.evolve(super().provider_info(), title="Mine")


HIDING = [
    HidingDialect, HidingByChoice, HidingBelow, ByPartial, ByAttribute, BySlot, ByProperty, ByDecorator, ByAnotherName, Below, Both,
]  # fmt: skip


@pytest.mark.parametrize("plugin", HIDING)
def test_an_override_sees_every_text(plugin: Any) -> None:
    """Or what was learnt of its base's promise would go around it."""
    known = Registry(installed=[])
    known.register(plugin(), "hiding")
    stream = normalize_stream([*map(_chunk, TEXTS), _end()], "hiding", registry=known)
    deltas = list(stream)
    assert SECRET not in str(deltas)
    assert stream.response.text.count("****") == 2
    for text in ("one", "two", "three", SECRET, "four"):
        message = {"role": "assistant", "content": text}
        body = {
            "id": "b",
            "object": "chat.completion",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        }
        answer = normalize(json.dumps(body).encode(), "hiding", registry=known)
        assert answer.text == text.replace(SECRET, "****")


class Sure(OpenAIChatDialect):
    """Reads otherwise, and vouches for it."""

    leaves_hold: ClassVar[bool] = True

    def reasoning(self, part: dict[str, Any], choice: int, state: MappingState) -> str | None:
        """Nothing else."""
        return super().reasoning(part, choice, state)


class SurelyNot(Sure):
    """Its base's word is not its own."""

    def extensions(self, event: Any, state: MappingState) -> dict[str, Any]:
        """Nothing else."""
        return super().extensions(event, state)


class Counting(OpenAIChatDialect):
    """What it makes of counts may be another thing for large ones."""

    def map_usage(self, event: Any, state: MappingState) -> Any:
        """Nothing else."""
        return super().map_usage(event, state)


@attrs.frozen
class Harmless(OpenAIChatDialect):
    """Overrides what reads nothing."""

    key: str = "x"

    @property
    def access(self) -> Any:  # type: ignore[override]
        """It is plain data in its base."""
        return None

    @property
    def logprob_leaves(self) -> Any:
        """It declares leaves."""
        return {}

    def recognizes(self, event: Any) -> Any:
        """Nothing else."""
        return super().recognizes(event)

    def own_way(self) -> None:
        """What no base has."""


class Choosing(OpenAIChatDialect):
    """Knows its answers by what they say, where its server speaks another dialect, too."""

    speaks = ("other",)

    def recognizes(self, event: Any) -> Any:
        """Nothing else."""
        return super().recognizes(event)


class Disguised(OpenAIChatDialect):
    """A hook under the name of what is harmless."""

    @hookimpl(specname="map_delta", tryfirst=True)
    def spell(self, event: Any, state: MappingState) -> None:  # type: ignore[override]
        """Nothing at all."""


class Named:
    """Only says what its provider is called, and where its texts are."""

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        """With leaves that whoever reads declares."""
        return ProviderInfo(title="named", text_leaves=("say",))


class Reading(Named):
    """The first that reads."""

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> list[ResponseDelta]:
        """The text."""
        return [ResponseDelta(content_delta=event.pop("say"))]


class Slotted(Reading):
    __slots__ = ("key",)


class SlottedAgain(Slotted):
    __slots__ = ("key",)


class Wrapping:
    """A dialect that holds another one."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class SurelyWrapping(Wrapping):
    leaves_hold = True


class Tricky(OpenAIChatDialect):
    """May give anything for any name."""

    def __getattribute__(self, name: str) -> Any:
        return super().__getattribute__(name)


class RedactingNative(NativeDialect):
    """A dialect of Ollama's that reads otherwise."""

    def map_delta(self, event: Any, state: MappingState) -> Any:
        """Nothing else."""
        return super().map_delta(event, state)


class SureNative(RedactingNative):
    """Its base's fault is not its own."""

    leaves_hold = True


class Family(DialectFamily):
    """A stranger's server, which speaks a dialect of the stranger's."""

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        """With leaves of its own."""
        return ProviderInfo(title="family", text_leaves=("message.content",))


def _patched() -> OpenAIChatDialect:
    plugin = OpenAIChatDialect()
    plugin.reasoning = lambda part, choice, state: "hm"  # type: ignore[method-assign]
    return plugin


@pytest.mark.parametrize(
    ("plugin", "holds"),
    [
        (OpenAIChatDialect(), True),
        (Sure(), True),
        (SurelyNot(), False),
        (Counting(), False),
        (Harmless(), True),
        (Tricky(), False),
        (_patched(), False),
        (Ollama(NativeDialect(), OpenAILayer()), True),
        (Ollama(RedactingNative(), OpenAILayer()), False),
        (Ollama(SureNative(), OpenAILayer()), False),
        (Family(RedactingNative()), True),
        (Ollama(Wrapping(NativeDialect()), OpenAILayer()), False),
        (Ollama(SurelyWrapping(NativeDialect()), OpenAILayer()), True),
        (Choosing(), False),
        (Disguised(), False),
        (Reading(), True),
        (SlottedAgain(), True),
    ],
    ids=[
        "base",
        "vouched for",
        "on top of it",
        "counts",
        "harmless",
        "a trick",
        "patched",
        "a family",
        "a dialect from elsewhere",
        "on top of one",
        "a family's own",
        "a dialect that wraps",
        "one that vouches",
        "chooses",
        "in disguise",
        "the first that reads",
        "a slot again",
    ],
)
def test_what_holds(plugin: Any, holds: bool) -> None:
    """Of whatever class, or none, the method is."""
    known = Registry(installed=[])
    known.register(plugin, "one")
    assert known.mapper("one").is_plain is holds
