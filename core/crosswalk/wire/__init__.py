"""From bytes to parsed events: framing, and JSON within limits; no I/O."""

from crosswalk.wire.body import BodyDecoder
from crosswalk.wire.events import load_event
from crosswalk.wire.framing import Decoder, Frame, is_done
from crosswalk.wire.limits import Limits
from crosswalk.wire.ndjson import NDJSONDecoder
from crosswalk.wire.sniff import Framing, SniffingDecoder

__all__ = [
    "BodyDecoder",
    "Decoder",
    "Frame",
    "Framing",
    "Limits",
    "NDJSONDecoder",
    "SniffingDecoder",
    "is_done",
    "load_event",
]
