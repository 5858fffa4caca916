"""Server-sent events with the provider's own words, in lanes. A body has all of a lane in one object."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from crosswalk.plugins import (
    CitationRef,
    ErrorInfo,
    ErrorKind,
    FinishReason,
    MappingState,
    ProviderInfo,
    Recognition,
    ResponseDelta,
    Segment,
    SegmentType,
    TokenLogprob,
    UnknownEventError,
    UsageInfo,
    WireTypeError,
    accept_count,
    accept_number,
    accept_object,
    accept_objects,
    accept_string,
    hookimpl,
    look_at,
    require_object,
    take_arguments,
    take_count,
    take_error,
    take_objects,
    take_string,
)

TROUBLES = {
    "flooded": ErrorKind.RATE_LIMIT,
    "collapsed": ErrorKind.SERVER,
    "stranger": ErrorKind.AUTHENTICATION,
    "overlong": ErrorKind.CONTEXT_OVERFLOW,
}
CAUSES = {
    "natural": FinishReason.STOP,
    "halted": FinishReason.STOP,
    "exhausted": FinishReason.LENGTH,
    "applied": FinishReason.TOOL_CALLS,
    "censored": FinishReason.CONTENT_FILTER,
}
KINDS = ("utter", "ponder", "decline", "apply", "quote", "close", "open", "bill", "beat")


class Lanes:
    @hookimpl
    def provider_info(self) -> ProviderInfo:
        return ProviderInfo(title="Lanes", api=1)

    @hookimpl
    def recognizes(self, event: Any) -> Recognition:
        return Recognition.POSSIBLE if isinstance(event, dict) and "parley" in event else Recognition.NO

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterator[ResponseDelta]:
        event = require_object(event)
        name = state.event_name
        if name == "trouble" or "trouble" in event:
            yield take_error(event, self.trouble(event, None))
            return
        if name is not None and name not in KINDS:
            raise UnknownEventError("an event of an unknown name", event_type=name)
        self.identify(event, state)
        for lane in [event] if name is not None else take_objects(event, "lanes"):
            yield from self.lane(lane, state, name)

    def identify(self, event: dict[str, Any], state: MappingState) -> None:
        opened = look_at(event, "opened", str)
        created = None if opened is None else self.time(opened)
        if created is not None:
            del event["opened"]
        state.identify(id=take_string(event, "parley"), model=take_string(event, "engine"), created=created)

    def time(self, text: str) -> datetime | None:
        try:
            time = datetime.fromisoformat(text)
        except ValueError:
            return None
        return time if time.tzinfo is not None else None

    def lane(self, lane: dict[str, Any], state: MappingState, name: str | None) -> Iterator[ResponseDelta]:
        choice = 0 if name in ("open", "bill", "beat") else take_count(lane, "lane") or 0
        thought = take_string(lane, "chars" if name == "ponder" else "ponder")
        if thought:
            yield ResponseDelta(reasoning_delta=thought, choice=choice)
        denial = take_string(lane, "chars" if name == "decline" else "decline")
        if denial:
            yield ResponseDelta(refusal_delta=denial, choice=choice)
        text = take_string(lane, "chars" if name == "utter" else "utter")
        odds = self.odds(lane)
        if text or odds:
            yield ResponseDelta(content_delta=text or None, logprobs=odds or None, choice=choice)
        for source in accept_objects(lane, "quote"):
            url = accept_string(source, "href")
            if url:
                yield ResponseDelta(
                    segment=Segment(SegmentType.CITATION, annotations=(CitationRef(source=url),)),
                    choice=choice,
                )
        for call in take_objects(lane, "apply"):
            arguments, _ = take_arguments(call, "with")
            slot, ref, skill = take_count(call, "slot"), take_string(call, "ref"), take_string(call, "skill")
            delta = state.tool_call(index=slot, id=ref, name=skill, arguments=arguments, choice=choice)
            yield ResponseDelta(tool_call_delta=delta, choice=choice)
            if delta.index != slot:
                call["slot"] = slot
        cause = take_string(lane, "cause")
        if cause is not None:
            yield ResponseDelta(raw_finish_reason=cause, choice=choice)

    def odds(self, lane: dict[str, Any]) -> tuple[TokenLogprob, ...]:
        found = []
        for item in accept_objects(lane, "odds"):
            token, logprob = accept_string(item, "bit"), accept_number(item, "ln")
            if token is not None:
                others = accept_objects(item, "rivals")
                rivals = tuple(
                    TokenLogprob(accept_string(one, "bit") or "", accept_number(one, "ln")) for one in others
                )
                found.append(TokenLogprob(token, logprob, top=rivals))
        return tuple(found)

    def trouble(self, event: dict[str, Any], status: int | None) -> ErrorInfo:
        code, words = event.get("trouble"), event.get("words")
        if not isinstance(code, str) or not isinstance(words, str):
            raise WireTypeError("trouble", expected="string", got=code)
        kind = TROUBLES.get(code, ErrorKind.UNKNOWN)
        return ErrorInfo(kind, words, code in ("flooded", "collapsed"), status, code, dict(event))

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        bill = accept_object(event, "bill")
        if bill is None:
            return None
        heard, remembered = accept_count(bill, "heard"), accept_count(bill, "remembered")
        uttered, pondered = accept_count(bill, "uttered"), accept_count(bill, "pondered")
        prompt = None if heard is None else heard + (remembered or 0)
        if heard is not None:
            bill["heard"] = heard
        return state.usage_info(prompt, uttered, cached_tokens=remembered, reasoning_tokens=pondered)

    @hookimpl
    def map_finish_reason(self, reason: str) -> FinishReason | None:
        return CAUSES.get(reason)

    @hookimpl
    def map_error(self, status: int, body: Any) -> ErrorInfo | None:
        return self.trouble(body, status) if isinstance(body, dict) and "trouble" in body else None


plugin = Lanes()
