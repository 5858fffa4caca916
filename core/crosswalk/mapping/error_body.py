"""The body of an HTTP error: JSON, a stream's error event, text or a proxy's page of HTML alike."""

from __future__ import annotations

from typing import Any

from crosswalk.errors import ErrorInfo, FramingError, MappingError, PluginError
from crosswalk.mapping.failures import error_delta, error_info
from crosswalk.plugin.mapper import Mapper, is_cancellation
from crosswalk.types.delta import ResponseDelta
from crosswalk.wire.events import load_event
from crosswalk.wire.framing import is_done
from crosswalk.wire.limits import Limits
from crosswalk.wire.sniff import SniffingDecoder

__all__ = ["read_error_body"]


def read_error_body(mapper: Mapper, status: int, body: bytes, limits: Limits) -> ResponseDelta:
    """The delta that ends an answer of HTTP *status* 400 or above.

    Raises:
        PluginError: the plugin's ``map_error`` failed.
    """
    said = _decoded(body, limits)
    try:
        info = mapper.map_error(status, said)
        if info is not None and type(info) is not ErrorInfo:
            raise mapper.broken(f"map_error gave {type(info).__name__}, not ErrorInfo")
    except MappingError:  # a body that is odd even for an error: its status still says what it means
        info = None
    except BaseException as error:
        if is_cancellation(error):
            raise
        if isinstance(error, PluginError) and error.plugin == mapper.provider:
            raise
        raise mapper.broken(f"map_error failed with {type(error).__name__}") from error
    return error_delta(error_info(status, said) if info is None else info)


def _decoded(body: bytes, limits: Limits) -> Any:
    """An error body as JSON: of a stream its first error event, else all of its events; what is no JSON as text."""
    try:
        return load_event(body, limits, halves="mend")
    except FramingError:
        pass
    decoder = SniffingDecoder(limits)
    try:
        frames = [data for data, _ in (*decoder.decode(body), *decoder.flush()) if data and not is_done(data)]
        if decoder.framing == "sse":
            events = [load_event(data, limits, halves="mend") for data in frames]
            errors = (event for event in events if isinstance(event, dict) and event.get("error"))
            return next(errors, {"events": events})
    except FramingError:
        pass
    return body.decode(errors="replace").strip()
