"""The fields that a conversion could not carry."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import attrs
import orjson

from crosswalk.convert.rules import UNNAMED, Grade as Grade, LossReason as LossReason, LossRule as LossRule
from crosswalk.formats.writing import ConversionError, WireForm

_WORDS = {
    LossReason.DROPPED: "has no place",
    LossReason.CHANGED: "stands there with another value",
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
        by_grade: dict[bool, list[Loss]] = {True: [], False: []}
        for loss in losses:
            by_grade[loss.rule.grade is Grade.HARMLESS].append(loss)
        return cls(form, tuple(by_grade[False]), tuple(by_grade[True]), is_carried)

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
            "losses": [
                {
                    "path": loss.path,
                    "reason": loss.reason.value,
                    "rule": loss.rule.name,
                    "grade": loss.rule.grade.value,
                }
                for loss in self.losses
            ],
            **({"carried": True} if self.is_carried else {}),
        }

    def to_json(self) -> bytes:
        """Return the report as JSON text."""
        return orjson.dumps(self.to_jsonable())

    def __str__(self) -> str:
        """Return the report for people: a line with the number of losses, and one for each field."""
        if not self.losses:
            return f"{self.form.label}: everything carried"
        counts = Counter(loss.reason for loss in self.losses)
        raw = ", ".join(f"{count} {reason.value.replace('_', ' ')}" for reason, count in counts.items())
        stored = ", carried for a later conversion" if self.is_carried else ""
        return "\n".join([f"{self.form.label}: {raw}{stored}", *(f"  {loss}" for loss in self.losses)])


class DangerousLossError(ConversionError):
    """The form cannot express a fact that matters for acting on the answer, such as a tool call.

    Attributes:
        losses: the dangerous losses.
    """

    def __init__(self, form: str, losses: tuple[Loss, ...]) -> None:
        first = losses[0]
        more = f", and {len(losses) - 1} more" if len(losses) > 1 else ""
        super().__init__(
            f"{form}: {first.rule.why} @ {first.path}{more}; pass losses='report' to write it anyway"
        )
        self.losses = losses
