"""What a conversion could not carry: the rules, the differences between two readings, and the report."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final, TypeAlias

import attrs
import orjson

from crosswalk.formats.tables import TABLES
from crosswalk.formats.writing import ConversionError, WireForm, is_same_object, source_form, tier_of
from crosswalk.mapping.reader import ENVELOPE_KEYS as ENVELOPE_KEYS
from crosswalk.text import counted
from crosswalk.types.json import same_json, step
from crosswalk.types.message import ToolCall
from crosswalk.types.response import Alternative, ChatResponse
from crosswalk.types.usage import Provenance
from crosswalk.types.values import (
    CitationRef,
    FinishReason,
    IncompleteReason,
    Segment,
    SegmentType,
    TokenLogprob,
)

# ----------------------------------------------------------------------------------- rules
# The rules of losses: why a conversion does not carry a field unchanged, and how much that matters.
#
# Each loss of a report follows one rule of :data:`RULES`. The published matrix lists them.


class LossReason(StrEnum):
    """The effect of a conversion on a field that was not carried unchanged."""

    DROPPED = "dropped"
    """The form has no field for it."""
    CHANGED = "changed"
    """The form has a field, but not for this value. The field has the nearest one."""
    RESPELLED = "respelled"
    """The same JSON value in another spelling: spaces, escapes, the order of keys, ``1e2`` for ``100.0``."""
    JOINED = "joined"
    """Its text is merged with that of another part of the same type."""
    REORDERED = "reordered"
    """It is complete, in another order."""
    FILLED_IN = "filled_in"
    """The source lacks it and the form requires it. The field has a made-up value."""


class Grade(StrEnum):
    """How much a loss matters."""

    HARMLESS = "harmless"
    """The meaning is complete. A report does not list it."""
    CHANGED = "changed"
    """The meaning is reduced or changed. A report lists it."""
    DANGEROUS = "dangerous"
    """Acting on the converted answer may do the wrong thing. It is an error unless the caller allows it."""


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text)


@attrs.frozen
class LossRule:
    """A rule of losses.

    Attributes:
        name: its name.
        grade: how much such a loss matters.
        why: the reason, in a sentence.
        path: the fields that it is about, as a regular expression for their whole path.
        reasons: what became of them, or empty for anything.
        holds: whether it holds for a field of the answer *before* and *after* the conversion, or ``None`` for always. For a
            field of an alternative, both are that alternative.
    """

    name: str
    grade: Grade
    why: str
    path: re.Pattern[str] = attrs.field(converter=_pattern)
    reasons: tuple[LossReason, ...] = ()
    holds: Callable[[str, Answer, Answer], bool] | None = None


Answer: TypeAlias = ChatResponse | Alternative
"""One of the answers of a response: the first one, or one of its alternatives."""


def says_something(value: Any) -> bool:
    """Whether *value* of the provider's further fields tells a client something."""
    if isinstance(value, dict):
        return any(key not in ENVELOPE_KEYS and says_something(inner) for key, inner in value.items())
    if isinstance(value, list):
        return any(map(says_something, value))
    return value is False or value not in (None, "", 0)


def _is_stated(_: str, __: Answer, ___: Answer) -> bool:
    """Never: the comparison of the further fields has each value at hand, and states this rule itself."""
    return False


def _is_zero(path: str, before: Answer, _: Answer) -> bool:
    value: Any = before
    for name in path.split("."):
        value = getattr(value, name)
    return not value


def _is_of_responses(_: str, before: Answer, __: Answer) -> bool:
    return isinstance(before, ChatResponse) and source_form(before) is WireForm.OPENAI_RESPONSES


def _is_cut(_: str, before: Answer, after: Answer) -> bool:
    return before.finish_reason not in _WHOLE_REASONS and after.finish_reason in _WHOLE_REASONS


_WHOLE_REASONS: Final = (FinishReason.STOP, FinishReason.TOOL_CALLS)


def _is_broken_as_whole(path: str, before: Answer, after: Answer) -> bool:
    return not _call(path, before).has_valid_arguments and after.finish_reason in _WHOLE_REASONS


def _is_unreadable(path: str, before: Answer, after: Answer) -> bool:
    return not _call(path, before).has_valid_arguments and after.finish_reason not in _WHOLE_REASONS


def _is_told_source(path: str, before: Answer, after: Answer) -> bool:
    """Whether *after* says the title, the address or the cited words of a citation of *before* in another place."""
    number, _, field = path.rpartition("segments[")[2].partition("].")
    citation = before.segments[int(number)]
    told = [one for one in after.segments if one.type is SegmentType.CITATION]
    refs = [ref for one in told for ref in _refs(one)]
    if field == "content":  # words of the answer itself
        spans = [ref.span for ref in _refs(citation) if ref.span is not None]
        is_of_text = any(before.message.text[slice(*span)] == citation.content for span in spans)
        return is_of_text and {*spans} <= {ref.span for ref in refs}
    said = {*(ref.source for ref in refs), *(one.content for one in told)}
    value = citation.metadata.get(field.removeprefix("metadata."))
    return citation.type is SegmentType.CITATION and value in said


def _refs(citation: Segment) -> list[CitationRef]:
    return [ref for ref in citation.annotations if isinstance(ref, CitationRef)]


def _has_same_tokens(_: str, before: Answer, after: Answer) -> bool:
    return _plain_tokens(before.logprobs or ()) == _plain_tokens(after.logprobs or ())


def _plain_tokens(tokens: Iterable[TokenLogprob]) -> list[TokenLogprob]:
    """Return *tokens* without bytes that their texts say as well."""
    return [
        attrs.evolve(
            one,
            bytes=None if one.bytes == tuple(one.token.encode()) else one.bytes,
            top=_plain_tokens(one.top),
        )
        for one in tokens
    ]


def _is_error(_: str, before: Answer, after: Answer) -> bool:
    return before.finish_reason is FinishReason.ERROR is after.finish_reason


def _call(path: str, answer: Answer) -> ToolCall:
    """Return the call of *answer* that *path* is about."""
    calls = answer.message.tool_calls or ()
    return calls[int(path.rpartition("[")[2].partition("]")[0])]


def _had_none(path: str, before: Answer, _: Answer) -> bool:
    return not _call(path, before).arguments.strip()


def _is_emptied(path: str, _: Answer, after: Answer) -> bool:
    return _call(path, after).arguments in ("", "{}")


def _is_with_refusal(_: str, before: Answer, after: Answer) -> bool:
    return after.message.text == before.message.text + (before.refusal or "")


def _is_spaced(_: str, before: Answer, after: Answer) -> bool:
    old, new = before.message.text, after.message.text
    return bool(old.strip()) and old.strip() == new.strip()


def _is(*kinds: SegmentType) -> Callable[[str, Answer, Answer], bool]:
    def holds(path: str, before: Answer, _: Answer) -> bool:
        number = int(path.rpartition("segments[")[2].partition("]")[0])
        return before.segments[number].type in kinds

    return holds


_H, _C, _D = Grade.HARMLESS, Grade.CHANGED, Grade.DANGEROUS
_ANSWER_PATH = r"(alternatives\[\d+\]\.)?"
_TEXT_PATH = _ANSWER_PATH + r"message\.content"
_CALL_PATH = _ANSWER_PATH + r"message\.tool_calls\[\d+\]"
_SEGMENT_PATH = _ANSWER_PATH + r"segments\[\d+\].*"

_ENVELOPE_RULE: Final = LossRule("envelope", _H, "a field about the document, such as `object`, or one without a value",
    r"metadata\.extensions.*", holds=_is_stated)  # fmt: skip

_BEGINNING_RULE: Final = LossRule("beginning", _H, "an item had another seal when it began, and has a complete one",
    r"metadata\.extensions\.output\[\d+\]\.added", holds=_is_stated)  # fmt: skip

_NO_ECHOES: Final = {"input", "service_tier", "conversation", "continuation_token"}
"""Fields of a request that say something else in an answer: what it costs, and how to go on."""
_ECHOES: Final = {
    *({re.split(r"[.\[]", row.path)[0] for row in TABLES[WireForm.OPENAI_RESPONSES.key].rows} - _NO_ECHOES),
    *("billing", "frequency_penalty", "presence_penalty"),
}
"""The fields of an answer of Responses that repeat the options of its request."""

RULES: Final = (
    LossRule("respelled", _H, "the same JSON value in other characters", ".*", (LossReason.RESPELLED,)),
    LossRule("joined", _H, "the text is there, in one piece with its neighbour", ".*", (LossReason.JOINED,)),
    LossRule("filled-in", _H, "the format requires the field and the source does not have it", ".*",
        (LossReason.FILLED_IN,)),
    LossRule("measured", _H, "Crosswalk measured it; no server sent it",
        r"attempts|metadata\.(request_duration|time_to_first_token)"),
    LossRule("reader", _H, "it names the reader of the answer, not its content", r"metadata\.(provider_id|model_id)"),
    LossRule("provenance", _H, "a note of Crosswalk about a value", r"metadata\.provenance.*"),
    LossRule("time", _H, "the format has whole seconds, or no time of creation", "created"),
    LossRule("finish-word", _H, "the format has its own word for the same finish reason",
        _ANSWER_PATH + "raw_finish_reason"),
    LossRule("zero-count", _H, "the format has no place for a count of zero", r"usage\..*", holds=_is_zero),
    _ENVELOPE_RULE,
    LossRule("echo", _H, "the answer repeats the options of its request, or its events have padding",
        rf"metadata\.extensions\.({'|'.join(sorted(_ECHOES))}|obfuscation)([.\[].*)?", holds=_is_of_responses),
    _BEGINNING_RULE,
    LossRule("token-bytes", _H, "the bytes of each token are those of its text", _ANSWER_PATH + "logprobs",
        holds=_has_same_tokens),
    LossRule("error-alone", _C, "the answer is an error, and the format has no content besides it",
        r"message\.(content|tool_calls.*)", holds=_is_error),
    LossRule("no-arguments", _H, "a call without arguments has an empty object",
        _CALL_PATH + r"\.arguments", holds=_had_none),
    LossRule("call-arguments", _D, "a call has lost its arguments", _CALL_PATH + r"\.arguments", holds=_is_emptied),
    LossRule("call-order", _C, "calls are in the order in which they became known", _ANSWER_PATH + r"message\.tool_calls",
        (LossReason.REORDERED,)),
    LossRule("unreadable-call", _C,
        "a call whose arguments are not a JSON object is left out, and the finish reason says so or that the answer was cut",
        _CALL_PATH, holds=_is_unreadable),
    LossRule("call", _D, "the format has no tool calls, or not these",
        _ANSWER_PATH + r"message\.tool_calls(\[\d+\](\.name)?)?"),
    LossRule("cut-as-whole", _D, "an answer that is not whole would look whole",
        _ANSWER_PATH + "finish_reason", holds=_is_cut),
    LossRule("incomplete-as-whole", _D,
        "the answer is incomplete (`incomplete_reason`), and would look complete",
        "incomplete_reason"),
    LossRule("refusal-as-text", _C, "the format has no refusals; the text holds the words", _TEXT_PATH,
        holds=_is_with_refusal),
    LossRule("white-space", _C, "the provider's final text has other white space at its ends than the streamed one",
        _TEXT_PATH, holds=_is_spaced),
    LossRule("text", _D, "the text of the answer is not all there", _TEXT_PATH),
    LossRule("broken-call-as-whole", _D,
        "arguments that are not a JSON object are an object under `INVALID_JSON`, as if the call were whole",
        _CALL_PATH + r"\.arguments", holds=_is_broken_as_whole),
    LossRule("call-text", _C,
        "arguments that are not a JSON object are text under `INVALID_JSON`, or a number or a repeated key is lost",
        _CALL_PATH + r"\.arguments"),
    LossRule("call-identity", _C, "the call has another id, or is written as a function", _CALL_PATH + r"\.(id|kind)"),
    LossRule("finish", _C, "the format has no such finish reason; the nearest one replaces it",
        _ANSWER_PATH + "finish_reason"),
    LossRule("refusal", _C, "the format has no refusals", _ANSWER_PATH + "refusal"),
    LossRule("alternative", _C, "the format has one answer, or another order", r"alternatives(\[\d+\])?"),
    LossRule("name", _C, "the format has no name of the author", _ANSWER_PATH + r"message\.name"),
    LossRule("identity", _C, "the format has no id, or no model", "id|model"),
    LossRule("count", _C, "the format does not count this", r"usage(\..*)?"),
    LossRule("filter-verdict", _C, "the format has no verdicts of content filters", "content_filter_results"),
    LossRule("logprobs", _C, "the format has no log probabilities, or not of all tokens", _ANSWER_PATH + "logprobs.*"),
    LossRule("order", _C, "the format has another order of parts, or other parts", _ANSWER_PATH + "segments"),
    LossRule("reasoning", _C, "the format has no reasoning, or not its signature, id or encrypted form",
        _SEGMENT_PATH, holds=_is(SegmentType.REASONING)),
    LossRule("server-tool", _C,
        "calls of a server's tools stay in their own format, but for a web search, and so do further fields of a call",
        _SEGMENT_PATH, holds=_is(SegmentType.TOOL_CALL)),
    LossRule("told-citation", _H, "the citation says its address, its title or its words in another field",
        _ANSWER_PATH + r"segments\[\d+\]\.(content|metadata\.(title|url))", holds=_is_told_source),
    LossRule("citation", _C, "the format cites web pages only, or not at all",
        _SEGMENT_PATH, holds=_is(SegmentType.CITATION)),
    LossRule("media", _C, "the format has no such image, sound or file", _SEGMENT_PATH, holds=_is(SegmentType.MEDIA)),
    LossRule("safety", _C, "the format has no safety ratings", _SEGMENT_PATH, holds=_is(SegmentType.SAFETY)),
    LossRule("error-detail", _C, "the format has its own words for an error", _SEGMENT_PATH, holds=_is(SegmentType.ERROR)),
    LossRule("text-detail", _C, "the format has no such field of a text, or not this cut between texts",
        _SEGMENT_PATH, holds=_is(SegmentType.TEXT, SegmentType.REFUSAL)),
    LossRule("further-field", _C, "a field of the provider's own that the format does not have", r"metadata\.extensions.*"),
)  # fmt: skip
"""The rules. The first that holds is that of a loss."""

UNNAMED: Final = LossRule("unnamed", _C, "a loss that no rule names; please report it", ".*")
"""The rule of a loss without another rule."""


def rule_of(path: str, reason: LossReason, before: Answer, after: Answer) -> LossRule:
    """Return the rule for the field *path* that the answer *before* has and *after* does not have unchanged."""
    rules = _rules_about(path, reason)
    return next((rule for rule in rules if rule.holds is None or rule.holds(path, before, after)), UNNAMED)


@lru_cache(maxsize=4096)
def _rules_about(path: str, reason: LossReason) -> list[LossRule]:
    return [
        rule for rule in RULES if rule.path.fullmatch(path) and (not rule.reasons or reason in rule.reasons)
    ]


# ---------------------------------------------------------------------------------- report
# The fields that a conversion could not carry.


_WORDS = {
    LossReason.DROPPED: "has no place",
    LossReason.CHANGED: "is there with another value",
    LossReason.RESPELLED: "the same JSON value, spelled otherwise",
    LossReason.JOINED: "joined with another part of its type",
    LossReason.REORDERED: "all there, in another order",
    LossReason.FILLED_IN: "the form demands it: made up",
}


@attrs.frozen(order=True)
class Loss:
    """A canonical field that the form does not carry unchanged.

    Attributes:
        path: the field, such as ``segments[2].metadata.signature``, including all that is below it.
        reason: what became of it.
        rule: why, and how much it matters.
    """

    path: str
    reason: LossReason
    rule: LossRule = attrs.field(default=UNNAMED, eq=False, order=False, repr=lambda rule: rule.name)

    def __str__(self) -> str:
        danger = " (dangerous)" if self.rule.grade is Grade.DANGEROUS else ""
        return f"{self.path}: {_WORDS[self.reason]}{danger}"


@attrs.frozen
class ConversionReport:
    """The fields that one conversion could not carry.

    A field that is neither in *losses* nor in *harmless* is the same when the answer is read back. Fields that the form adds
    (``object``, statuses, ids of items …) are not losses.

    Attributes:
        form: the form that was written.
        losses: the fields that are gone or changed, in the order of the canonical response, each once.
        harmless: the fields that are written otherwise and mean the same, in the same order.
        is_carried: whether the converted answer carries all of these for a later conversion.
    """

    form: WireForm
    losses: tuple[Loss, ...] = ()
    harmless: tuple[Loss, ...] = ()
    is_carried: bool = False

    @classmethod
    def of(cls, form: WireForm, losses: Iterable[Loss], *, is_carried: bool = False) -> ConversionReport:
        """Return a report of *losses* of every grade."""
        by_harmlessness: dict[bool, list[Loss]] = {True: [], False: []}
        for loss in losses:
            by_harmlessness[loss.rule.grade is Grade.HARMLESS].append(loss)
        return cls(form, tuple(by_harmlessness[False]), tuple(by_harmlessness[True]), is_carried)

    @property
    def is_lossless(self) -> bool:
        """Whether no field is gone or changed."""
        return not self.losses

    @property
    def dangerous(self) -> tuple[Loss, ...]:
        """The losses that may make a reader of the answer do the wrong thing."""
        return tuple(loss for loss in self.losses if loss.rule.grade is Grade.DANGEROUS)

    @property
    def differences(self) -> tuple[Loss, ...]:
        """The losses and the harmless ones."""
        return (*self.losses, *self.harmless)

    @property
    def paths(self) -> frozenset[str]:
        """The paths of all losses, harmless ones too."""
        return frozenset(loss.path for loss in self.differences)

    def names(self, path: str) -> bool:
        """Whether the report has the field *path*, or one that contains it, as harmless or not."""
        return any(path == name or path.startswith((f"{name}.", f"{name}[")) for name in self.paths)

    def to_jsonable(self) -> dict[str, Any]:
        """Return the report as plain JSON."""
        return {
            "form": self.form.value,
            "losses": [_plain(loss) for loss in self.losses],
            **({"harmless": [_plain(loss) for loss in self.harmless]} if self.harmless else {}),
            **({"carried": True} if self.is_carried else {}),
        }

    def to_json(self) -> bytes:
        """Return the report as JSON text."""
        return orjson.dumps(self.to_jsonable())

    def __str__(self) -> str:
        """Return the report for people: a line with the number of losses, and one for each field that is lost."""
        counts = Counter(loss.reason for loss in self.losses)
        tally = ", ".join(f"{count} {reason.value.replace('_', ' ')}" for reason, count in counts.items())
        if self.harmless:
            tally = tally or "nothing that changes the meaning was lost"
            tally += f"; {counted(len(self.harmless), 'harmless difference')}"
        ending = ", carried for a later conversion" if self.is_carried and self.differences else ""
        first = f"{self.form.label}: {tally or 'everything carried'}{ending}"
        return "\n".join([first, *(f"  {loss}" for loss in self.losses)])


def _plain(loss: Loss) -> dict[str, str]:
    return {
        "path": loss.path,
        "reason": loss.reason.value,
        "rule": loss.rule.name,
        "grade": loss.rule.grade.value,
    }


class DangerousLossError(ConversionError):
    """The form cannot express a fact that matters for acting on the answer, such as a tool call.

    Attributes:
        losses: the dangerous losses.
    """

    def __init__(self, form: str, losses: tuple[Loss, ...]) -> None:
        first_loss = losses[0]
        more_phrase = f", and {len(losses) - 1} more" if len(losses) > 1 else ""
        super().__init__(
            f"{form}: {first_loss.rule.why} @ {first_loss.path}{more_phrase}; pass losses='report' to write it anyway"
        )
        self.losses = losses


# ---------------------------------------------------------------------------------- losses
# The differences between two readings of one answer: the original, and the written one, read back.
#
# The report of a conversion is made of these, so it names exactly the losses, whatever their reason.


_UNSENT_MARKS: Final = (Provenance.SYNTHETIC, Provenance.ABSENT)


def losses(before: ChatResponse, after: ChatResponse) -> tuple[Loss, ...]:
    """Return the fields of *before* that are missing or different in *after*, each once.

    ``raw_events`` are ignored, because each side has its own.
    """
    by_path: dict[str, Loss] = {}
    others = {other.index: other for other in reversed(after.alternatives)}
    pairs: dict[str, tuple[Answer, Answer]] = {
        f"alternatives[{position}].": (answer, others[answer.index])
        for position, answer in enumerate(before.alternatives)
        if answer.index in others
    }
    for loss in _losses(before, after):
        if loss.path in by_path:
            continue
        known_loss = loss if loss.rule is not UNNAMED else _certain(loss.path, loss.reason)
        if known_loss is None:
            old, new = pairs.get("".join(loss.path.partition(".")[:2]), (before, after))
            known_loss = Loss(loss.path, loss.reason, rule_of(loss.path, loss.reason, old, new))
        by_path[loss.path] = known_loss
    return tuple(by_path.values())


@lru_cache(maxsize=4096)
def _certain(path: str, reason: LossReason) -> Loss | None:
    """Return the loss of *path* with its rule, or ``None`` if that depends on the answers."""
    first_rule = next(iter(_rules_about(path, reason)), UNNAMED)
    return Loss(path, reason, first_rule) if first_rule.holds is None else None


def _losses(before: ChatResponse, after: ChatResponse) -> Iterator[Loss]:
    provenance = before.metadata.provenance
    for name in ("id", "created"):
        if provenance.get(name) is not Provenance.SYNTHETIC:
            is_lost = after.metadata.provenance.get(name) is Provenance.SYNTHETIC
            yield from _between(name, getattr(before, name), None if is_lost else getattr(after, name))
    yield from _fields("", before, after, "model")
    yield from _answer_losses("", before, after)
    incomplete_reason = before.incomplete_reason
    if incomplete_reason not in (None, IncompleteReason.REFUSAL) and after.incomplete_reason is None:
        yield Loss("incomplete_reason", LossReason.DROPPED)  # the words of a refusal say it themselves
    usage, details = before.usage, before.usage.details
    if usage != after.usage:
        yield from _fields(
            "usage.", usage, after.usage, *(name for name in _names(usage) if name != "details")
        )
        yield from _fields("usage.details.", details, after.usage.details, *_names(details))
    yield from _fields("", before, after, "content_filter_results")
    alternatives = {alternative.index: alternative for alternative in after.alternatives}
    for position, alternative in enumerate(before.alternatives):
        path = f"alternatives[{position}]"
        other = alternatives.pop(alternative.index, None)
        if other is not None:
            yield from _answer_losses(f"{path}.", alternative, other)
        else:
            yield Loss(path, LossReason.DROPPED)
    old, new = ([answer.index for answer in side.alternatives] for side in (before, after))
    shared = {*new}
    if [number for number in old if number in shared] != new:
        yield Loss("alternatives", LossReason.REORDERED)
    yield from _beside(before, after)


def _beside(before: ChatResponse, after: ChatResponse) -> Iterator[Loss]:
    if before.attempts:
        yield Loss("attempts", LossReason.DROPPED)
    old_metadata, new_metadata = before.metadata, after.metadata
    yield from _fields("metadata.", old_metadata, new_metadata, "provider_id", "model_id")
    if old_metadata.request_duration and old_metadata.request_duration != new_metadata.request_duration:
        yield Loss("metadata.request_duration", LossReason.DROPPED)
    yield from _fields("metadata.", old_metadata, new_metadata, "time_to_first_token")
    if old_metadata.extensions:
        extensions, new_extensions = old_metadata.extensions.thawed(), new_metadata.extensions.thawed()
        yield from _tier(extensions, new_extensions)
        if extensions.get("output") != new_extensions.get("output") and _is_of_responses("", before, after):
            yield from _beginnings(extensions.get("output"))
        yield from _values("metadata.extensions", extensions, new_extensions)
    for path, mark in old_metadata.provenance.items():
        if new_metadata.provenance.get(path) is not mark:
            reason = LossReason.FILLED_IN if mark in _UNSENT_MARKS else LossReason.DROPPED
            yield Loss(f"metadata.provenance{step(path)}", reason)
    for path, mark in new_metadata.provenance.items():
        if mark in _UNSENT_MARKS and path not in {*old_metadata.provenance, "metadata.request_duration"}:
            yield Loss(path, LossReason.DROPPED)


def _tier(extensions: dict[str, Any], new_extensions: dict[str, Any]) -> Iterator[Loss]:
    """Compare the service tier, which has several places and words, and take it out of *extensions*.

    The usual one is about the document, and any other one is about money.
    """
    sides = [(one, one.get("usage")) for one in (extensions, new_extensions)]
    if not any(isinstance(holder, dict) and "service_tier" in holder for holder in sides[0]):
        return
    tier, is_carried = tier_of(extensions), tier_of(extensions) == tier_of(new_extensions)
    for path, holder, new_holder in zip((".service_tier", ".usage.service_tier"), *sides, strict=True):
        if not (isinstance(holder, dict) and "service_tier" in holder):
            continue
        said = {"service_tier": holder.pop("service_tier")}
        if not (isinstance(new_holder, dict) and said.items() <= new_holder.items()):
            is_harmless = is_carried or tier in (None, "auto", "default")
            rule = _ENVELOPE_RULE if is_harmless else UNNAMED
            yield Loss(f"metadata.extensions{path}", LossReason.DROPPED, rule)


def _beginnings(items: Any) -> Iterator[Loss]:
    """Take what *items* of Responses had when they began out of them, and return it as lost."""
    for position, item in enumerate(items if isinstance(items, list) else ()):
        if isinstance(item, dict) and item.pop("added", None) is not None:
            yield Loss(f"metadata.extensions.output[{position}].added", LossReason.DROPPED, _BEGINNING_RULE)


def _answer_losses(prefix: str, before: Answer, after: Answer) -> Iterator[Loss]:
    """Compare one of several answers."""
    yield from _fields(prefix, before, after, "finish_reason", "raw_finish_reason")
    yield from _fields(f"{prefix}message.", before.message, after.message, "content", "name")
    old_calls = before.message.tool_calls or ()
    new_calls = _in_order_of(old_calls, after.message.tool_calls or ())
    if new_calls != (after.message.tool_calls or ()):
        yield Loss(f"{prefix}message.tool_calls", LossReason.REORDERED)
    for number, call in enumerate(old_calls):
        path = f"{prefix}message.tool_calls[{number}]"
        if number >= len(new_calls):
            yield Loss(path, LossReason.DROPPED)
            continue
        yield from _fields(f"{path}.", call, new_calls[number], "id", "name", "kind")
        yield from _arguments(f"{path}.arguments", call.arguments, new_calls[number].arguments)
    if len(new_calls) > len(old_calls):
        yield Loss(f"{prefix}message.tool_calls", LossReason.CHANGED)
    yield from _fields(prefix, before, after, "refusal")
    yield from _segments(f"{prefix}segments", before.segments, after.segments)
    yield from _logprobs(f"{prefix}logprobs", before.logprobs, after.logprobs)


def _in_order_of(old: tuple[ToolCall, ...], new: tuple[ToolCall, ...]) -> tuple[ToolCall, ...]:
    """Return *new* in the order of *old*, if they have the same ids."""
    by_id = {call.id: call for call in new}
    is_same = len(by_id) == len(new) and [*sorted(by_id)] == sorted(call.id for call in old)
    return tuple(by_id[call.id] for call in old) if is_same else new


def _fields(prefix: str, before: Any, after: Any, *names: str) -> Iterator[Loss]:
    for name in names:
        old, new = getattr(before, name), getattr(after, name)
        if old is not new:
            yield from _between(prefix + name, old, new)


def _names(value: Any) -> Iterator[str]:
    """Return the fields of *value*, of an attrs class."""
    return (field.name for field in attrs.fields(type(value)))


def _between(path: str, before: Any, after: Any) -> Iterator[Loss]:
    if before == after and type(before) is type(after):
        return
    if before is None:
        yield Loss(path, LossReason.FILLED_IN)
    else:
        yield Loss(path, LossReason.DROPPED if after is None else LossReason.CHANGED)


def _objects(path: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Loss]:
    """Return the keys of *before* that are missing or different in *after*. Further keys belong to the form."""
    for key, value in before.items():
        if key not in after:
            yield Loss(f"{path}{step(key)}", LossReason.DROPPED)
        elif not same_json(value, after[key]):
            yield Loss(f"{path}{step(key)}", LossReason.CHANGED)


def _values(path: str, before: Any, after: Any, is_envelope: bool = False) -> Iterator[Loss]:
    """Compare likewise, down to the leaves. A field in one about the document is about it, too."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key, value in before.items():
            place, is_in_envelope = f"{path}{step(key)}", is_envelope or key in ENVELOPE_KEYS
            if key in after:
                yield from _values(place, value, after[key], is_in_envelope)
            else:
                yield _lost_value(place, LossReason.DROPPED, value, is_in_envelope)
    elif isinstance(before, list) and isinstance(after, list) and _are_parts(before) and _are_parts(after):
        old_numbers, new_numbers = (
            [item.get("index", position) for position, item in enumerate(side)] for side in (before, after)
        )
        if old_numbers != new_numbers[: len(old_numbers)]:
            yield _lost_value(path, LossReason.CHANGED, before, is_envelope)
        partners = dict(
            zip(reversed(new_numbers), reversed(after), strict=True)
        )  # of equal numbers the first
        for position, number in enumerate(old_numbers):
            place, value = f"{path}[{position}]", before[position]
            if number in partners:
                yield from _values(place, value, partners[number], is_envelope)
            else:
                yield _lost_value(place, LossReason.DROPPED, value, is_envelope)
    elif not same_json(before, after):
        yield _lost_value(path, LossReason.CHANGED, before, is_envelope)


def _lost_value(path: str, reason: LossReason, value: Any, is_envelope: bool) -> Loss:
    return Loss(path, reason, _ENVELOPE_RULE if is_envelope or not says_something(value) else UNNAMED)


def _are_parts(values: list[Any]) -> bool:
    """Whether *values* are objects that each have a position, as an ``index`` or in the list."""
    return all(isinstance(item, dict) and type(item.get("index", 0)) is int for item in values)


def _arguments(path: str, before: str, after: str) -> Iterator[Loss]:
    if before == after:
        return
    is_same = is_same_object(before, after)
    yield Loss(path, LossReason.RESPELLED if is_same else LossReason.CHANGED)


def _logprobs(
    path: str, before: Sequence[TokenLogprob] | None, after: Sequence[TokenLogprob] | None
) -> Iterator[Loss]:
    if before == after:
        return
    if before and after and len(before) == len(after):
        filled_paths = set()
        for old, new in zip(before, after, strict=True):
            filled_paths |= _filled_in(old, new, "")
        if "" not in filled_paths:
            for path_below in sorted(filled_paths):
                yield Loss(f"{path}[]{path_below}", LossReason.FILLED_IN)
            return
    yield Loss(path, LossReason.CHANGED if after else LossReason.DROPPED)


def _filled_in(before: TokenLogprob, after: TokenLogprob, place: str) -> set[str]:
    """Return the paths at which only *after* has bytes, or ``""`` among them if they differ in another way."""
    filled_paths = {f"{place}.bytes"} if before.bytes is None and after.bytes is not None else set()
    has_same_bytes = bool(filled_paths) or before.bytes == after.bytes
    if not has_same_bytes or (before.token, before.logprob) != (after.token, after.logprob):
        return {""}
    if len(before.top) != len(after.top):
        return {""}
    for old, new in zip(before.top, after.top, strict=True):
        filled_paths |= _filled_in(old, new, f"{place}.top[]")
    return filled_paths


# Segments.


def _is_something(segment: Segment) -> bool:
    return bool(segment.content or segment.metadata or segment.annotations)


def _segments(path: str, before: tuple[Segment, ...], after: tuple[Segment, ...]) -> Iterator[Loss]:
    if before == after and not any(segment.metadata for segment in before):
        return
    old_entries = [(number, segment) for number, segment in enumerate(before) if _is_something(segment)]
    new = [segment for segment in after if _is_something(segment)]
    pairs = _matched([segment for _, segment in old_entries], new)
    joined_kinds = {
        kind
        for kind in {segment.type for _, segment in old_entries}
        if _is_joined(kind, [segment for _, segment in old_entries], new)
    }
    for position, (number, segment) in enumerate(old_entries):
        segment_path = f"{path}[{number}]"
        partner_position = pairs.get(position)
        if partner_position is None:
            is_joined = segment.type in joined_kinds and bool(segment.content)
            if is_joined and not segment.metadata and not segment.annotations:
                yield Loss(segment_path, LossReason.JOINED)
            else:
                yield Loss(segment_path, LossReason.DROPPED)
        else:
            yield from _segment(segment_path, segment, new[partner_position])
    order = [pairs[position] for position in sorted(pairs)]
    if order != sorted(order):
        yield Loss(path, LossReason.REORDERED)
    elif any(new[position].type not in joined_kinds for position in set(range(len(new))) - set(order)):
        yield Loss(path, LossReason.CHANGED)


def _matched(old: list[Segment], new: list[Segment]) -> dict[int, int]:
    """Match segments of *old* and *new*: the same one, else the same content, the same call, or the next of its type."""
    pairs: dict[int, int] = {}
    taken_positions: set[int] = set()
    for key_of in (_by_identity, _by_content, _by_id, _by_type):
        free_positions: dict[Any, list[int]] = {}
        for position in reversed(range(len(new))):
            if position not in taken_positions and key_of(new[position]) is not None:
                free_positions.setdefault(key_of(new[position]), []).append(position)
        for position, segment in enumerate(old):
            candidates = free_positions.get(key_of(segment)) if position not in pairs else None
            if candidates:
                pairs[position] = candidates.pop()
                taken_positions.add(pairs[position])
        if len(pairs) == len(old):
            break
    return pairs


def _by_identity(segment: Segment) -> Any:
    identity = (str(segment.metadata.get(name)) for name in ("type", "id", "tool_use_id"))
    return segment.type, segment.content, *identity


def _by_content(segment: Segment) -> Any:
    return None if segment.type is SegmentType.TOOL_CALL else (segment.type, segment.content)


def _by_id(segment: Segment) -> Any:
    id = segment.metadata.get("id") if segment.type is SegmentType.TOOL_CALL else None
    return None if id is None else str(id)


def _by_type(segment: Segment) -> Any:
    """A unique segment may be matched by its type. Texts that differ are not the same text."""
    return segment.type if segment.type in (SegmentType.CITATION, SegmentType.ERROR) else None


def _is_joined(kind: SegmentType, old: list[Segment], new: list[Segment]) -> bool:
    one, other = ("".join(s.content for s in side if s.type is kind) for side in (old, new))
    return bool(one) and one == other


def _segment(path: str, before: Segment, after: Segment) -> Iterator[Loss]:
    if before.type is SegmentType.TOOL_CALL:
        yield from _arguments(f"{path}.content", before.content, after.content)
    else:
        yield from _fields(f"{path}.", before, after, "content")
    yield from _objects(f"{path}.metadata", before.metadata.thawed(), after.metadata.thawed())
    for number, annotation in enumerate(before.annotations):
        annotation_path = f"{path}.annotations[{number}]"
        if number >= len(after.annotations) or type(annotation) is not type(after.annotations[number]):
            yield Loss(annotation_path, LossReason.DROPPED)
        else:
            yield from _fields(
                f"{annotation_path}.", annotation, after.annotations[number], *_names(annotation)
            )
