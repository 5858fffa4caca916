"""Displays: the updates of processors as text, JSON Lines or a live terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswalk.lazy import face

if TYPE_CHECKING:
    from crosswalk.responses.display.plain import (
        JSONLinesDisplay as JSONLinesDisplay,
        PlainTextDisplay as PlainTextDisplay,
        displays as displays,
        live_display as live_display,
    )
    from crosswalk.responses.display.strategy import (
        DisplayFactory as DisplayFactory,
        DisplayRegistry as DisplayRegistry,
        DisplayStrategy as DisplayStrategy,
        UnknownDisplayError as UnknownDisplayError,
        Update as Update,
        UpdateKind as UpdateKind,
    )
else:
    __getattr__, __dir__ = face(
        __name__,
        {
            "crosswalk.responses.display.plain": ("JSONLinesDisplay PlainTextDisplay displays live_display"),
            "crosswalk.responses.display.strategy": (
                "DisplayFactory DisplayRegistry DisplayStrategy UnknownDisplayError Update UpdateKind"
            ),
        },
    )
