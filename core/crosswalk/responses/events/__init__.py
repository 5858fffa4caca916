"""The events of a stream (provider document "OpenAI Responses", section 3.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswalk.lazy import lazy

if TYPE_CHECKING:
    from crosswalk.responses.events.calls import *
    from crosswalk.responses.events.event import *
    from crosswalk.responses.events.lifecycle import *
    from crosswalk.responses.events.text import *
    from crosswalk.responses.events.union import *
else:
    __getattr__, __dir__ = lazy(__name__, "calls event lifecycle text union")
