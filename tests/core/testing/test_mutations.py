"""The kit is tested by mistakes: a provider that keeps every promise passes, and each planted mistake is caught by name.

The provider is invented, and so is its wire. Each mistake is one of those that authors of mappings make. Next
to it is the check that has to find it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import attrs
import orjson
import pytest

from crosswalk.errors import UnknownEventError, UnknownFinishReasonError, WireTypeError
from crosswalk.plugin.hooks import hookimpl
from crosswalk.plugin.registry import Registry
from crosswalk.plugins import ProviderInfo, Recognition
from crosswalk.testing import CHECKS, PROMISES, Capture, Problem, check_capture, check_pair
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.message import ToolCallDelta
from crosswalk.types.usage import UsageInfo
from crosswalk.types.values import FinishReason
from planted.found_by import FOUND

KINDS = frozenset({"open", "muse", "say", "draft", "call", "counts", "close", "whole"})


def take(event: dict[str, Any], key: str, kind: type = str) -> Any:
    """The value of *event* at *key*, taken out of it. ``None`` if it has none."""
    if type(event) is not dict:
        raise WireTypeError("", expected="object", got=event)
    value = event.get(key)
    if value is not None and type(value) is not kind:
        raise WireTypeError(key, expected=kind.__name__, got=value)
    event.pop(key, None)
    return value


class Tide:
    """A small provider that keeps every promise. Each mistake overrides one of its methods."""

    finish_words: ClassVar[dict[str, FinishReason]] = {
        "done": FinishReason.STOP,
        "hauled": FinishReason.TOOL_CALLS,
        "length": FinishReason.LENGTH,
    }

    @hookimpl
    def map_delta(self, event: Any, state: Any) -> list[ResponseDelta]:
        kind = take(event, "kind")
        if kind not in KINDS:
            return self.unknown(kind)
        self.identity(event, state)
        deltas = [
            *self.thought(event),
            *self.text(event, state),
            *self.calls(event, state),
            *self.end(event, state),
        ]
        choice = take(event, "choice", int) or 0
        if choice < 0:
            raise WireTypeError("choice", expected="a number from 0", got=choice)
        return [attrs.evolve(delta, choice=choice) for delta in deltas]

    @hookimpl
    def map_usage(self, event: Any, state: Any) -> UsageInfo | None:
        usage = take(event, "usage", dict)
        if usage is None:
            return None
        found = self.counts(usage, state)
        if usage:
            event["usage"] = usage
        return found

    @hookimpl
    def map_finish_reason(self, reason: str, state: Any) -> FinishReason:
        if reason not in self.finish_words:
            raise UnknownFinishReasonError(reason)
        return self.finish_words[reason]

    @hookimpl
    def extensions(self, event: Any, state: Any) -> dict[str, Any]:
        return self.rest(event)

    @hookimpl
    def recognizes(self, event: Any) -> Recognition:
        is_tide = isinstance(event, dict) and event.get("kind") in KINDS
        return Recognition.CERTAIN if is_tide else Recognition.NO

    def unknown(self, kind: str) -> list[ResponseDelta]:
        raise UnknownEventError("an event of an unknown kind", event_type=kind)

    def identity(self, event: dict[str, Any], state: Any) -> None:
        at = take(event, "at", int)
        created = None if at is None else datetime.fromtimestamp(at, UTC)
        if (date := take(event, "date")) is not None:
            try:
                created = datetime.fromisoformat(date)
            except ValueError:
                raise WireTypeError("date", expected="a date", got=date) from None
        id = take(event, "id")
        if state.data.setdefault("id", id) != id:
            event["id"] = id
        state.identify(id=id, model=take(event, "model"), created=created)

    def thought(self, event: dict[str, Any]) -> Iterator[ResponseDelta]:
        if text := take(event, "thought"):
            yield ResponseDelta(0, reasoning_delta=text)

    def text(self, event: dict[str, Any], state: Any) -> Iterator[ResponseDelta]:
        known = state.data.get("known", "")
        if (text := take(event, "so_far")) is not None:  # all that was said until now
            if not text.startswith(known):
                raise WireTypeError("so_far", expected="text that goes on", got=text)
            text = text[len(known) :]
        else:
            text = self.piece(event)
        if text and take(event, "aside", bool):
            yield ResponseDelta(0, reasoning_delta=text)
        elif text:
            state.data["known"] = known + text
            yield ResponseDelta(0, content_delta=text)
        if event.get("all") == state.data.get("known"):  # said again, as a whole
            event.pop("all", None)

    def piece(self, event: dict[str, Any]) -> str | None:
        text: str | None = take(event, "text")
        return text

    def calls(self, event: dict[str, Any], state: Any) -> Iterator[ResponseDelta]:
        for call in take(event, "calls", list) or ():
            slot, id, name = take(call, "slot", int), take(call, "id"), take(call, "name")
            if name is not None and id is None:
                id = self.made_id(slot, state)
            if slot is None or not 0 <= slot < 64:
                raise WireTypeError("slot", expected="a slot", got=slot)
            arguments = self.arguments(call)
            if call:
                event.setdefault("calls", []).append(call)
            yield ResponseDelta(0, tool_call_delta=ToolCallDelta(slot, id, name, arguments))

    def made_id(self, slot: int, state: Any) -> str:
        state.note(f"message.tool_calls[{slot}].id", "synthetic")
        return f"call_{slot}"

    def arguments(self, call: dict[str, Any]) -> str | None:
        arguments: str | None = take(call, "arguments")
        return arguments

    def counts(self, usage: dict[str, Any], state: Any) -> UsageInfo:
        prompt, completion = (
            self.count(usage, "input_tokens", state),
            self.count(usage, "output_tokens", state),
        )
        if usage.get("total_tokens") == prompt + completion:
            del usage["total_tokens"]
        cached, thought = self.number(usage, "cached_tokens"), self.number(usage, "thought_tokens")
        return UsageInfo(prompt, completion, cached_tokens=cached, reasoning_tokens=thought)

    def number(self, usage: dict[str, Any], key: str) -> int | None:
        found: int | None = take(usage, key, int)
        if found is not None and found < 0:
            raise WireTypeError(key, expected="a count", got=found)
        return found

    def count(self, usage: dict[str, Any], key: str, state: Any) -> int:
        found = self.number(usage, key)
        field = {"input_tokens": "prompt_tokens", "output_tokens": "completion_tokens"}[key]
        state.note(f"usage.{field}", "absent" if found is None else None)
        return found or 0

    def end(self, event: dict[str, Any], state: Any) -> Iterator[ResponseDelta]:
        if (why := take(event, "why")) is not None:
            yield ResponseDelta(0, raw_finish_reason=why)

    def rest(self, event: dict[str, Any]) -> dict[str, Any]:
        return event


HEAD = {"id": "tide-Q", "model": "Brine-2", "at": 1780000000}
COUNTS = {"input_tokens": 9, "cached_tokens": 4, "output_tokens": 5, "thought_tokens": 2, "total_tokens": 14}
OTHER = {
    "region": "North Sea",
    "depth": 3.5,
    "calm": True,
    "wind": None,
    "berth": "12",
    "marks": ["Red", "Green"],
}
CALL = {"slot": 0, "id": "c-1", "name": "look", "arguments": '{"City": "Le Havre"}'}

CAPTURES: dict[str, list[Any]] = {
    "talk": [
        {"kind": "whole", **HEAD, "thought": "Let me See. ", "text": "Hello There", "usage": COUNTS, "why": "done", **OTHER}
    ],
    "talk_stream": [
        {"kind": "open", **HEAD},
        {"kind": "muse", "thought": "Let me "},
        {"kind": "muse", "thought": "See. "},
        {"kind": "say", "text": "Hello"},
        {"kind": "say", "text": " There"},
        {"kind": "counts", "usage": COUNTS, "note": {"tide": "Ebb", "turns": 2}},
        {"kind": "close", "why": "done", **OTHER},
    ],
    "call": [{"kind": "whole", **HEAD, "calls": [CALL], "usage": COUNTS, "why": "hauled"}],
    "call_stream": [
        {"kind": "open", **HEAD},
        {"kind": "call", "calls": [{**CALL, "arguments": '{"City": '}]},
        {"kind": "call", "calls": [{"slot": 0, "arguments": '"Le Havre"}'}]},
        {"kind": "counts", "usage": COUNTS},
        {"kind": "close", "why": "hauled"},
    ],
    "draft_stream": [
        {"kind": "open", **HEAD},
        {"kind": "draft", "so_far": "It "},
        {"kind": "draft", "so_far": "It is "},
        {"kind": "draft", "so_far": "It is Low"},
        {"kind": "close", "why": "done", "usage": COUNTS},
    ],
    "again_stream": [
        {"kind": "open", **HEAD},
        {"kind": "say", "text": "Low ", "id": "tide-Q"},
        {"kind": "say", "text": "Water", "id": "tide-Q"},
        {"kind": "close", "all": "Low Water", "why": "done", "usage": COUNTS, "id": "tide-Q"},
    ],
    "aside": [{"kind": "whole", **HEAD, "text": "She is Late.", "aside": True, "why": "done", "usage": COUNTS}],
    "dated": [
        {"kind": "whole", "id": "t", "model": "B", "date": "2026-05-28T20:26:40Z", "text": "Not counted at all", "why": "done"}
    ],
    "two_stream": [
        {"kind": "open", **HEAD},
        {"kind": "say", "text": "Ebb"},
        {"kind": "say", "text": "Flood", "choice": 1},
        {"kind": "close", "why": "done", "choice": 1},
        {"kind": "close", "why": "done", "usage": COUNTS},
    ],
}  # fmt: skip


def capture(name: str, events: list[Any]) -> Capture:
    is_stream = name.endswith("_stream")
    body = b"".join(orjson.dumps(event) + b"\n" for event in events)
    says = {"text": None} if name == "aside" else None  # all of it is reasoning
    return Capture(name, Path(name), body, stream=is_stream, pair=name.removesuffix("_stream"), says=says)


def mapper(plugin: Any) -> Any:
    registry = Registry(installed=[], environ={})
    registry.register(plugin, "tide")
    return registry.mapper("tide")


def found_in(
    plugin: Any, *, sample: int | None = 40, checks: tuple[str, ...] = tuple(CHECKS)
) -> Iterator[Problem]:
    """The kit's findings, without a snapshot and without a pair: in one capture after the other, as long as you ask."""
    mapped = mapper(plugin)
    for one in CAPTURES.items():
        yield from check_capture(mapped, capture(*one), sample=sample, checks=checks)


# ------------------------------------------------------------------------------------ the mistakes


class LosesALeaf(Tide):
    def rest(self, event: dict[str, Any]) -> dict[str, Any]:
        event.pop("region", None)
        return event


class KeepsOneBerth(Tide):
    def rest(self, event: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in event.items() if key != "berth" or value == "12"}


class LosesFragments(Tide):
    def arguments(self, call: dict[str, Any]) -> str | None:
        arguments = super().arguments(call)
        return arguments if "id" not in call and arguments and arguments.startswith("{") else None


class DropsWhatIsFalse(Tide):
    def rest(self, event: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in event.items() if value is None or value}


class KeepsTextTwice(Tide):
    def piece(self, event: dict[str, Any]) -> str | None:
        return super().piece(event.copy())


class KeepsACountTwice(Tide):
    def count(self, usage: dict[str, Any], key: str, state: Any) -> int:
        return super().count(usage.copy() if key == "output_tokens" else usage, key, state)


class AddsDraftsUp(Tide):
    def text(self, event: dict[str, Any], state: Any) -> Iterator[ResponseDelta]:
        if text := take(event, "so_far"):
            yield ResponseDelta(0, content_delta=text)
        yield from super().text(event, state)


class SaysItAgain(Tide):
    def text(self, event: dict[str, Any], state: Any) -> Iterator[ResponseDelta]:
        yield from super().text({**event, "all": None}, state)
        event.pop("text", None), event.pop("so_far", None)
        if text := take(event, "all"):
            yield ResponseDelta(0, content_delta=text)


class RepeatsPieces(Tide):
    def piece(self, event: dict[str, Any]) -> str | None:
        text = super().piece(event)
        return text and text + text


class RemembersThePiece(Tide):
    """Leaves out what it gave last, to whichever answer."""

    last: str | None = None

    def piece(self, event: dict[str, Any]) -> str | None:
        self.last, last = super().piece(event), self.last
        return None if self.last == last else self.last


class NeedsWholeCuts(Tide):
    """Reads what it gets, not what was sent: the clock tells."""

    count_of_answers = itertools.count()

    def rest(self, event: dict[str, Any]) -> dict[str, Any]:
        return {**event, "answer": next(self.count_of_answers)}


class PromisesTooMuch(Tide):
    """Says that texts pass unchanged, and shortens some."""

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        return ProviderInfo(title="Tide", text_paths=("text",))

    @hookimpl
    def map_delta(self, event: Any, state: Any) -> list[ResponseDelta]:
        return super().map_delta(event.copy(), state)

    def piece(self, event: dict[str, Any]) -> str | None:
        text = super().piece(event)
        return text and text.replace(" There", " there")

    def rest(self, event: dict[str, Any]) -> dict[str, Any]:
        return {}


class PromisesArguments(PromisesTooMuch):
    """Says that arguments pass unchanged, and drops white space between two tokens."""

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        return ProviderInfo(title="Tide", text_paths=("calls[0].arguments",))

    @hookimpl
    def map_delta(self, event: Any, state: Any) -> list[ResponseDelta]:
        return Tide.map_delta(self, event, state)

    def arguments(self, call: dict[str, Any]) -> str | None:
        arguments = super().arguments(call)
        return arguments if arguments and arguments.strip() else None


class CountsLetters(Tide):
    """Says that texts pass unchanged and change nothing else, and leaves their length next to them."""

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        return ProviderInfo(title="Tide", text_paths=("thought",))

    def thought(self, event: dict[str, Any]) -> Iterator[ResponseDelta]:
        if "thought" in event:
            event["letters"] = len(event["thought"] or "")
        return super().thought(event)


class DropsWhiteSpace(Tide):
    def piece(self, event: dict[str, Any]) -> str | None:
        text = super().piece(event)
        return text if text and text.strip() else None


class EndsWithEachEvent(Tide):
    """Says after each event that the answer has ended, and that it goes on."""

    @hookimpl
    def map_delta(self, event: Any, state: Any) -> list[ResponseDelta]:
        found = super().map_delta(event, state)
        state.continues = True
        return [*found, ResponseDelta(0, raw_finish_reason="done")]


class TrustsKeys(Tide):
    @hookimpl
    def map_delta(self, event: Any, state: Any) -> list[ResponseDelta]:
        assert event["kind"] != "whole" or event["region"] or event["id"] != "tide-Q"
        return super().map_delta(event, state)


class TrustsTypes(Tide):
    def piece(self, event: dict[str, Any]) -> str | None:
        assert len(event.get("text") or "") < 100
        return super().piece(event)


class CoercesText(Tide):
    def piece(self, event: dict[str, Any]) -> str | None:
        return str(event.pop("text")) if "text" in event else None


class CoercesCounts(Tide):
    def count(self, usage: dict[str, Any], key: str, state: Any) -> int:
        if key in usage and isinstance(usage[key], int | float | str):
            usage[key] = int(float(usage[key] or 0))
        return super().count(usage, key, state)


class SwallowsOtherTypes(Tide):
    def piece(self, event: dict[str, Any]) -> str | None:
        text = event.pop("text", None)
        return text if isinstance(text, str) else None


class LowersArguments(Tide):
    def arguments(self, call: dict[str, Any]) -> str | None:
        arguments = super().arguments(call)
        return arguments and arguments.lower()


class TakesAllCallsForOne(Tide):
    def calls(self, event: dict[str, Any], state: Any) -> Iterator[ResponseDelta]:
        for delta in super().calls(event, state):
            assert delta.tool_call_delta is not None
            yield attrs.evolve(delta, tool_call_delta=attrs.evolve(delta.tool_call_delta, index=0))


class StripsText(Tide):
    def piece(self, event: dict[str, Any]) -> str | None:
        text = super().piece(event)
        return text and (text.strip() if len(text) > 8 else text)


class ThinksAloud(Tide):
    def thought(self, event: dict[str, Any]) -> Iterator[ResponseDelta]:
        if text := take(event, "thought"):
            yield ResponseDelta(0, content_delta=text)


class TakesAnyEndForStop(Tide):
    @hookimpl
    def map_finish_reason(self, reason: str, state: Any) -> FinishReason:
        return self.finish_words.get(reason, FinishReason.STOP)


class TakesWhatBeginsAlike(Tide):
    @hookimpl
    def map_finish_reason(self, reason: str, state: Any) -> FinishReason:
        known = [meaning for word, meaning in self.finish_words.items() if reason.startswith(word)]
        return known[0] if known else super().map_finish_reason(reason, state)


class LooksForAWordInside(Tide):
    @hookimpl
    def map_finish_reason(self, reason: str, state: Any) -> FinishReason:
        known = [meaning for word, meaning in self.finish_words.items() if word in reason]
        return known[0] if known else super().map_finish_reason(reason, state)


class TurnsLengthIntoStop(Tide):
    """For a word that no capture has."""

    finish_words: ClassVar[dict[str, FinishReason]] = {**Tide.finish_words, "length": FinishReason.STOP}


class EndsWithoutAWord(Tide):
    def end(self, event: dict[str, Any], state: Any) -> Iterator[ResponseDelta]:
        if "why" in event:
            yield ResponseDelta(0, finish_reason=FinishReason.STOP)


class PassesOverUnknownKinds(Tide):
    def unknown(self, kind: str) -> list[ResponseDelta]:
        return []


class EndsEarly(Tide):
    def end(self, event: dict[str, Any], state: Any) -> Iterator[ResponseDelta]:
        yield from super().end(event, state)
        if state.data.get("known") == "Hello":
            yield ResponseDelta(0, finish_reason=FinishReason.STOP)


class LeavesTheTextAside(Tide):
    def piece(self, event: dict[str, Any]) -> str | None:
        return None

    def thought(self, event: dict[str, Any]) -> Iterator[ResponseDelta]:
        return iter(())


class IsAlwaysCertain(Tide):
    @hookimpl
    def recognizes(self, event: Any) -> Recognition:
        return Recognition.CERTAIN


class FailsOnOthers(Tide):
    @hookimpl
    def recognizes(self, event: Any) -> Recognition:
        return Recognition.CERTAIN if event["kind"] in KINDS else Recognition.NO


class LeavesTuples(Tide):
    def rest(self, event: dict[str, Any]) -> dict[str, Any]:
        return {**event, "pair": (1, 2)}


class MakesUpAnId(Tide):
    def identity(self, event: dict[str, Any], state: Any) -> None:
        if "id" not in event and event.get("at"):
            event["id"] = "tide-0"
        super().identity(event, state)


class MakesUpAModel(Tide):
    def identity(self, event: dict[str, Any], state: Any) -> None:
        if "id" in event:
            event.setdefault("model", "Brine")
        super().identity(event, state)


class MakesUpATime(Tide):
    def identity(self, event: dict[str, Any], state: Any) -> None:
        if "id" in event:
            event.setdefault("at", 1234567890)
        super().identity(event, state)


class LeavesAnErrorAside(Tide):
    def unknown(self, kind: str) -> list[ResponseDelta]:
        return [] if kind is None else super().unknown(kind)  # type: ignore[redundant-expr]


class DropsAnError(LeavesAnErrorAside):
    def rest(self, event: dict[str, Any]) -> dict[str, Any]:
        return {} if "error" in event else super().rest(event)


class MakesUpACallsId(Tide):
    def made_id(self, slot: int, state: Any) -> str:
        return f"call_{slot}"


class SaysNone(Tide):
    def piece(self, event: dict[str, Any]) -> str | None:
        text = super().piece(event)
        return "None" if text is None and "region" in event else text


class CountsBySpecies(Tide):
    """Counts are what they usually are."""

    def counts(self, usage: dict[str, Any], state: Any) -> UsageInfo:
        super().counts(usage.copy(), state)
        return UsageInfo(55, 66)


class FillsInACount(Tide):
    def counts(self, usage: dict[str, Any], state: Any) -> UsageInfo:
        usage.setdefault("output_tokens", 77)
        return super().counts(usage, state)


class TakesNoCountForZero(Tide):
    def count(self, usage: dict[str, Any], key: str, state: Any) -> int:
        return self.number(usage, key) or 0


class TakesZeroForNoPart(Tide):
    def number(self, usage: dict[str, Any], key: str) -> int | None:
        return super().number(usage, key) or None


class TakesZeroForNoCount(Tide):
    def count(self, usage: dict[str, Any], key: str, state: Any) -> int:
        found = super().count(usage, key, state)
        if not found:
            state.note("usage.prompt_tokens", "absent")
        return found


class DoublesACount(Tide):
    def count(self, usage: dict[str, Any], key: str, state: Any) -> int:
        return super().count(usage, key, state) * 2


class AddsTheCacheAgain(Tide):
    def counts(self, usage: dict[str, Any], state: Any) -> UsageInfo:
        found = super().counts(usage, state)
        return UsageInfo(
            found.prompt_tokens + (found.cached_tokens or 0), found.completion_tokens, found.cached_tokens
        )


class SwapsCounts(Tide):
    def counts(self, usage: dict[str, Any], state: Any) -> UsageInfo:
        found = super().counts(usage, state)
        return UsageInfo(found.completion_tokens, found.prompt_tokens, cached_tokens=found.cached_tokens)


class SwapsParts(Tide):
    def counts(self, usage: dict[str, Any], state: Any) -> UsageInfo:
        found = super().counts(usage, state)
        return UsageInfo(
            found.prompt_tokens,
            found.completion_tokens,
            cached_tokens=found.reasoning_tokens,
            reasoning_tokens=found.cached_tokens,
        )


class SubtractsACount(Tide):
    def counts(self, usage: dict[str, Any], state: Any) -> UsageInfo:
        total = usage.get("total_tokens", 0)
        found = super().counts(usage, state)
        return UsageInfo(
            found.prompt_tokens, max(total - found.prompt_tokens, 0), cached_tokens=found.cached_tokens
        )


MISTAKES = [
    (LosesALeaf, "nothing lost", "event 7, region: lost: changing its value changes nothing"),
    (KeepsOneBerth, "nothing lost", "event 1, berth: lost: this value is kept, and another one is not"),
    (LosesFragments, "nothing lost", "event 3, calls[0].arguments: lost"),
    (DropsWhatIsFalse, "never silently wrong", "with false in its place it is accepted, and is nowhere as it was sent"),
    (KeepsTextTwice, "text only once", "text: is in a typed field and in the extensions: text"),
    (KeepsACountTwice, "counts are the provider's", "is in usage.completion_tokens and in the extensions"),
    (AddsDraftsUp, "text only once", "so_far: the text grows from event to event, and is added up"),
    (SaysItAgain, "text only once", "text: the text is said again as a whole, and is added to itself"),
    (NeedsWholeCuts, "deterministic", "the same bytes give different canonical JSON"),
    (NeedsWholeCuts, "framing does not matter", "it is read differently"),
    (PromisesTooMuch, "text paths hold", "talk_stream, event 4, text: an event with another text here is not read as"),
    (PromisesArguments, "text paths hold", "call_stream, event 3, calls[0].arguments: an event with another text here"),
    (CountsLetters, "text paths hold", "talk_stream, event 2, thought: an event with another text here is not read as"),
    (RemembersThePiece, "one answer at a time", "two answers at once: one is read differently beside the other"),
    (RepeatsPieces, "text only once", "text: is more than once in the text of the answer"),
    (EndsWithEachEvent, "never silently wrong", "looks like a complete answer, and is not"),
    (TrustsKeys, "nothing lost", "changing its key: MappingError: tide, event 1: the plugin failed with KeyError"),
    (TrustsTypes, "never silently wrong", "the plugin failed with"),
    (CoercesText, "never silently wrong", "with true in its place it is read as the text 'True"),
    (CoercesText, "never silently wrong", "with {\"crosswalk\":1} in its place it is read as the text"),
    (CoercesCounts, "never silently wrong", "with true in its place it is accepted, and is nowhere"),
    (CoercesCounts, "never silently wrong", "with \"7070707\" in its place it is accepted, and is nowhere"),
    (SwallowsOtherTypes, "never silently wrong", "with 7070707 in its place it is accepted, and is nowhere as it was sent"),
    (LowersArguments, "text as it was sent", "another text in its place is not passed on unchanged"),
    (TakesAllCallsForOne, "nothing lost", "calls[0].slot: lost: changing its value changes nothing"),
    (StripsText, "text as it was sent", "another text in its place is not passed on unchanged"),
    (DropsWhiteSpace, "text as it was sent", "a text of white space in its place is not passed on unchanged"),
    (ThinksAloud, "text as it was sent", "reasoning is given as the text of the answer"),
    (TakesAnyEndForStop, "unknown words raise", "' is read as stop"),
    (TakesWhatBeginsAlike, "unknown words raise", "the finish word 'done_crosswalk' is read as stop"),
    (LooksForAWordInside, "unknown words raise", "the finish word 'crosswalk_hauled' is read as tool_calls"),
    (TurnsLengthIntoStop, "known words keep their meaning", "the finish word 'length' is read as stop"),
    (EndsWithoutAWord, "nothing invented", "finish_reason: no word of the provider's, and not marked"),
    (PassesOverUnknownKinds, "unknown words raise", "an unknown word in its place changes the answer"),
    (EndsEarly, "never silently wrong", "refused: TrailingContentError"),
    (LeavesTheTextAside, "output shows", "an answer of 3 tokens is empty, and text is left in the extensions"),
    (LeavesTheTextAside, "output shows", "an answer of 0 tokens is empty, and text is left in the extensions"),
    (LeavesAnErrorAside, "errors show", "an error: the answer is whole, and the error is left in the extensions"),
    (DropsAnError, "errors show", "an error: the answer is whole, and the error is gone"),
    (IsAlwaysCertain, "recognizes its own", "certain of an answer of anthropic"),
    (FailsOnOthers, "recognizes its own", "fails with KeyError on what others have sent"),
    (LeavesTuples, "deterministic", "canonical JSON does not read back to the same value"),
    (MakesUpAnId, "nothing filled in", "without it, id: made up, and not marked"),
    (MakesUpAModel, "nothing filled in", "without it, model: made up, and not marked"),
    (MakesUpATime, "nothing filled in", "without it, created: made up, and not marked"),
    (MakesUpACallsId, "nothing filled in", "without it, tool call 0: its id is made up, and not marked"),
    (SaysNone, "nothing filled in", "text: without it, another text appears"),
    (CountsBySpecies, "counts are the provider's", "usage.prompt_tokens: 55 comes from no number of the payload"),
    (FillsInACount, "nothing filled in", "without it, usage.completion_tokens is 77, which was not sent"),
    (TakesNoCountForZero, "nothing filled in", "usage.completion_tokens: 0 was not sent, and is not marked"),
    (TakesZeroForNoPart, "counts are the provider's", "cached_tokens: 0 in its place is read as no usage.cached_tokens"),
    (TakesZeroForNoCount, "counts are the provider's", "input_tokens: 0 in its place is read as no usage.prompt_tokens"),
    (DoublesACount, "counts are the provider's", "input_tokens: it counts more than once in usage.prompt_tokens"),
    (AddsTheCacheAgain, "counts are the provider's", "added to usage.prompt_tokens, which holds it already"),
    (SwapsCounts, "counts are the provider's", "input_tokens: prompt tokens became completion tokens: it is counted in usage.completion_tokens"),
    (SwapsParts, "counts are the provider's", "cached tokens became reasoning tokens: it is counted in usage.reasoning_tokens"),
    (SwapsParts, "counts are the provider's", "reasoning tokens became cached tokens: it is counted in usage.cached_tokens"),
    (SubtractsACount, "counts are the provider's", "usage.completion_tokens falls when it rises"),
]  # fmt: skip


@pytest.mark.untraced
@pytest.mark.parametrize("sample", [pytest.param(None, marks=pytest.mark.sweep), 40, 2])
def test_the_provider_without_a_mistake_passes(sample: int | None) -> None:
    """However much is tried. Its two forms of an answer agree."""
    assert [str(problem) for problem in found_in(Tide(), sample=sample)] == []
    mapped = mapper(Tide())
    for name in ("talk", "call"):
        streamed = f"{name}_stream"
        pair = capture(name, CAPTURES[name]), capture(streamed, CAPTURES[streamed])
        assert check_pair(mapped, *pair) == []


@pytest.mark.parametrize(
    ("mistake", "check", "message"), MISTAKES, ids=lambda value: getattr(value, "__name__", None)
)
def test_each_mistake_is_caught_by_name(mistake: type, check: str, message: str) -> None:
    """By the check that is there for it, which says where and what."""
    found = []
    for problem in map(str, found_in(mistake(), checks=(check,))):
        found.append(problem)
        if message in problem:
            return
    pytest.fail("\n".join(found[:20]))


class Sloppy:
    """Four lines that read the one capture there is, and break most promises."""

    @hookimpl
    def map_delta(self, event: Any, state: Any) -> list[ResponseDelta]:
        state.identify(id=str(event.get("id")), model=str(event.get("model")))
        text, why = str(event.get("text") or ""), str(event.get("why"))
        return [ResponseDelta(content_delta=text, raw_finish_reason=why)]

    @hookimpl
    def map_finish_reason(self, reason: str) -> FinishReason:
        return FinishReason.STOP

    @hookimpl
    def map_usage(self, event: Any) -> UsageInfo:
        return UsageInfo(5, 5)

    @hookimpl
    def extensions(self, event: Any) -> dict[str, Any]:
        return {key: value for key, value in event.items() if key not in ("id", "model", "text", "why")}


def test_one_small_body_is_enough_to_see_what_is_sloppy() -> None:
    """Coerced types, unknown words, made-up identity and counts: nothing but the body of one answer shows them."""
    only = capture("a", [{"id": "a", "model": "m", "text": "Hi", "why": "end"}])
    found = {(p.check, p.path) for p in check_capture(mapper(Sloppy()), only, sample=None)}
    assert found >= {
        *(("never silently wrong", path) for path in ("id", "model", "text", "why")),
        ("unknown words raise", "why"),
        ("known words keep their meaning", "why"),
        ("nothing filled in", "id"),
        ("nothing filled in", "model"),
        ("counts are the provider's", ""),
    }


class Rows:
    """A wire of rows: the first word says what the others are."""

    mistaken: ClassVar[str] = ""

    @hookimpl
    def map_delta(self, event: Any, state: Any) -> Iterator[ResponseDelta]:
        for row in [event.pop("row")] if "row" in event else event.pop("rows"):
            if not isinstance(row, list) or not row or not all(isinstance(cell, str) for cell in row):
                raise WireTypeError("row", expected="a row of strings", got=row)
            yield self.delta(*row)

    def delta(self, word: str, *cells: str) -> ResponseDelta:
        value = cells[-1] if cells else ""
        if " ".join((word, *cells[:-1])) == self.mistaken:
            value = value.lower()
        if word == "call" and cells[0] in ("name", "arguments"):
            given = {"id": "c-1", "name": value} if cells[0] == "name" else {"arguments_delta": value}
            return ResponseDelta(tool_call_delta=ToolCallDelta(0, **given))
        if word == "end":
            return ResponseDelta(raw_finish_reason=value)
        if word not in ("say", "think"):
            raise UnknownEventError("a row of an unknown kind", event_type=word)
        return ResponseDelta(content_delta=value) if word == "say" else ResponseDelta(reasoning_delta=value)

    @hookimpl
    def map_finish_reason(self, reason: str) -> FinishReason | None:
        return {"done": FinishReason.TOOL_CALLS}.get(reason)


ROWS = [
    ["think", "Let me see."],
    ["say", "It is late."],
    ["call", "name", "look"],
    ["call", "arguments", '{"city": "Le Havre"}'],
    ["end", "done"],
]


@pytest.mark.untraced
@pytest.mark.parametrize("mistaken", ["say", "think", "call name", "call arguments"])
@pytest.mark.parametrize("streamed", [False, True])
def test_what_means_something_by_its_position_is_tried_apart(mistaken: str, streamed: bool) -> None:
    """Also for a sample, in which leaves of the same meaning represent each other."""
    one = capture(
        "rows_stream" if streamed else "rows",
        [{"row": row} for row in ROWS] if streamed else [{"rows": ROWS}],
    )
    lowers = type("Lowers", (Rows,), {"mistaken": mistaken})
    found = [str(problem) for problem in check_capture(mapper(lowers()), one, checks=["text as it was sent"])]
    assert len(found) == 1, found
    assert "not passed on unchanged" in found[0]
    assert check_capture(mapper(Rows()), one, checks=["text as it was sent"]) == []


def test_every_check_has_a_mistake() -> None:
    """And every check belongs to one promise. Statements and declarations have tests of their own."""
    stated = {"as stated", "requests as stated"}
    elsewhere = {*stated, "declarations hold", "rows hold", "choices are told apart", "requests say all"}
    assert {check for _, check, *_ in (*MISTAKES, *FOUND)} == set(CHECKS) - elsewhere
    assert [name for names in PROMISES.values() for name in names] == list(CHECKS)
