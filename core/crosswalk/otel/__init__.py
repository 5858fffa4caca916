"""Responses as attributes and messages of OpenTelemetry's GenAI semantic conventions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswalk.lazy import lazy

if TYPE_CHECKING:
    from crosswalk.otel.attributes import *
    from crosswalk.otel.messages import *
    from crosswalk.otel.metrics import *
else:
    __getattr__, __dir__ = lazy(__name__, "attributes messages metrics")
