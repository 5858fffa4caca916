"""The errors of a conversion.

CrosswalkError
└── ConversionError (ValueError)     a value from which the form cannot be made
    ├── DangerousLossError           acting on the converted answer may do the wrong thing
    └── FoldingError                 a message or an item that the other kind of conversation cannot express
"""

from __future__ import annotations

from crosswalk.errors import CrosswalkError


class ConversionError(CrosswalkError, ValueError):
    """An unknown form, or a value that cannot be written as JSON."""


class FoldingError(ConversionError):
    """A message or an item that cannot be turned into the other.

    Attributes:
        place: its position, such as ``input[3]``.
        item_type: its ``type``, or the role of a message.
    """

    def __init__(self, problem: str, *, place: str, item_type: str) -> None:
        super().__init__(f"{problem} @ {place} ({item_type})")
        self.place = place
        self.item_type = item_type
