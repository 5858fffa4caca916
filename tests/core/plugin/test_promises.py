"""What a class declares as leaves is not inherited by one that reads otherwise and does not say that it holds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import pytest

from crosswalk import normalize, normalize_stream
from crosswalk.plugin import Registry
from crosswalk.plugins import MappingState, OpenAIChatDialect, ProviderInfo, ResponseDelta, hookimpl

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


@pytest.mark.parametrize(
    "plugin", [HidingDialect(), HidingByChoice(), HidingBelow()], ids=lambda one: type(one).__name__
)
def test_an_override_sees_every_text(plugin: Any) -> None:
    """Or what was learnt of its base's promise would go around it."""
    known = Registry(installed=[])
    known.register(plugin, "hiding")
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
    """What it makes of counts is asked."""

    def map_usage(self, event: Any, state: MappingState) -> Any:
        """Nothing else."""
        return super().map_usage(event, state)

    def own_way(self) -> None:
        """What no base has."""


class Anew(OpenAIChatDialect):
    """Declares everything itself."""

    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        """Nothing else."""
        return super().map_delta(event, state)

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        """With leaves of its own."""
        return ProviderInfo(title="anew", text_leaves=("choices[0].delta.content",))


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
        (Counting(), True),
        (Anew(), True),
        (_patched(), False),
    ],
    ids=["base", "vouched for", "on top of it", "counts", "declared anew", "patched"],
)
def test_what_holds(plugin: Any, holds: bool) -> None:
    """Of whatever class, or none, the method is."""
    known = Registry(installed=[])
    known.register(plugin, "one")
    assert known.mapper("one").is_plain is holds
