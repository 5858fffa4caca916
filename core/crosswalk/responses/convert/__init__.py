"""Conversion of answers: canonical to any wire form, and canonical to typed Responses values and back."""

from crosswalk.responses.convert.conversion import (
    Conversion,
    ConvertedStream,
    StreamConverter,
    convert,
    convert_stream,
)
from crosswalk.responses.convert.errors import ConversionError, FoldingError
from crosswalk.responses.convert.folding import FoldedMessage, fold, unfold
from crosswalk.responses.convert.form import WireForm
from crosswalk.responses.convert.report import ConversionReport, Loss, LossReason
from crosswalk.responses.convert.typed import (
    from_events,
    from_response,
    to_chat_completion,
    to_events,
    to_response,
)

__all__ = [
    "Conversion",
    "ConversionError",
    "ConversionReport",
    "ConvertedStream",
    "FoldedMessage",
    "FoldingError",
    "Loss",
    "LossReason",
    "StreamConverter",
    "WireForm",
    "convert",
    "convert_stream",
    "fold",
    "from_events",
    "from_response",
    "to_chat_completion",
    "to_events",
    "to_response",
    "unfold",
]
