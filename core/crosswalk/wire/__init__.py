"""From bytes to parsed events: framing, and JSON within limits, without I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswalk.lazy import lazy

if TYPE_CHECKING:
    from crosswalk.wire import (
        chat as chat,
        messages as messages,
        ollama as ollama,
        responses as responses,
    )
    from crosswalk.wire.body import *
    from crosswalk.wire.events import *
    from crosswalk.wire.framing import *
    from crosswalk.wire.limits import *
    from crosswalk.wire.ndjson import *
    from crosswalk.wire.sniff import *
    from crosswalk.wire.sse import *
else:
    _forms = {form: f"crosswalk.wire.{form}" for form in ("chat", "messages", "ollama", "responses")}
    __getattr__, __dir__ = lazy(__name__, "body events framing limits ndjson sniff sse", submodules=_forms)
