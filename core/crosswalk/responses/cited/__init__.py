"""The sources of a response: their numbers, their positions in the text, and their compression."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswalk.lazy import lazy

if TYPE_CHECKING:
    from crosswalk.responses.cited.citations import *
    from crosswalk.responses.cited.response import *
else:
    __getattr__, __dir__ = lazy(__name__, "citations response")
