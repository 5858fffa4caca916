"""Responses as attributes and messages of OpenTelemetry's GenAI semantic conventions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswalk.lazy import face

if TYPE_CHECKING:
    from crosswalk.otel.attributes import (
        otel_attributes as otel_attributes,
        otel_error_type as otel_error_type,
        otel_provider_name as otel_provider_name,
    )
    from crosswalk.otel.messages import (
        otel_output_messages as otel_output_messages,
    )
    from crosswalk.otel.metrics import (
        SCHEMA_URL as SCHEMA_URL,
        ClientMetrics as ClientMetrics,
    )
else:
    __getattr__, __dir__ = face(
        __name__,
        {
            "crosswalk.otel.attributes": "otel_attributes otel_error_type otel_provider_name",
            "crosswalk.otel.messages": "otel_output_messages",
            "crosswalk.otel.metrics": "ClientMetrics SCHEMA_URL",
        },
    )
