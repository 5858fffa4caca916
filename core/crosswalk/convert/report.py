"""What a conversion could not carry, field by field."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import Any

import attrs
import orjson

from crosswalk.convert.form import WireForm

__all__ = ["ConversionReport", "Loss", "LossReason"]


class LossReason(StrEnum):
    """What became of a field that was not carried as it was."""

    DROPPED = "dropped"
    """The form has no place for it."""
    CHANGED = "changed"
    """The form has a place, but not for this value: the nearest one stands there."""
    RESPELLED = "respelled"
    """The same JSON value in other words: spaces, escapes, the order of keys, ``1e2`` for ``100.0``."""
    JOINED = "joined"
    """Its text stands in one piece with that of another part of the same type."""
    REORDERED = "reordered"
    """It is all there, in another order."""
    FILLED_IN = "filled_in"
    """The source does not say it and the form demands it: what stands there was made up."""


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
    """A canonical field that the form does not carry as it was.

    Attributes:
        path: the field, such as ``segments[2].metadata.signature``; it stands for all that is below it.
        reason: what became of it.
    """

    path: str
    reason: LossReason

    def __str__(self) -> str:
        return f"{self.path}: {_WORDS[self.reason]}"


@attrs.frozen
class ConversionReport:
    """What one conversion could not carry. A field that it does not name is the same when it is read back.

    What the form adds on its own account (``object``, statuses, ids of items …) is no loss and not named.

    Attributes:
        form: the form that was written.
        losses: the fields, in the order of the canonical response, each once.
    """

    form: WireForm
    losses: tuple[Loss, ...] = ()

    @property
    def is_lossless(self) -> bool:
        """Whether everything was carried."""
        return not self.losses

    @property
    def paths(self) -> frozenset[str]:
        """The fields that are named."""
        return frozenset(loss.path for loss in self.losses)

    def names(self, path: str) -> bool:
        """Whether the field *path*, or one that it is a part of, is named."""
        return any(
            path == loss.path or path.startswith((f"{loss.path}.", f"{loss.path}[")) for loss in self.losses
        )

    def to_jsonable(self) -> dict[str, Any]:
        """The report as plain JSON."""
        return {
            "form": self.form.value,
            "losses": [{"path": loss.path, "reason": loss.reason.value} for loss in self.losses],
        }

    def to_json(self) -> bytes:
        """The report as JSON text."""
        return orjson.dumps(self.to_jsonable())

    def __str__(self) -> str:
        """The report for people: a line that counts, and one for each field."""
        if not self.losses:
            return f"{self.form.label}: everything carried"
        counts = Counter(loss.reason for loss in self.losses)
        said = ", ".join(f"{count} {reason.value.replace('_', ' ')}" for reason, count in counts.items())
        return "\n".join([f"{self.form.label}: {said}", *(f"  {loss}" for loss in self.losses)])
