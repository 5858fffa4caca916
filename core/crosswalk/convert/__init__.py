"""Conversion of answers: canonical to any wire form, and canonical to typed Responses values and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswalk.lazy import face

if TYPE_CHECKING:
    from crosswalk.convert.conversion import (
        Conversion as Conversion,
        LossPolicy as LossPolicy,
        convert as convert,
        error_body as error_body,
    )
    from crosswalk.convert.folding import (
        FoldedMessage as FoldedMessage,
        fold as fold,
        unfold as unfold,
    )
    from crosswalk.convert.report import (
        ConversionReport as ConversionReport,
        DangerousLossError as DangerousLossError,
        Loss as Loss,
    )
    from crosswalk.convert.rules import (
        Grade as Grade,
        LossReason as LossReason,
        LossRule as LossRule,
    )
    from crosswalk.convert.streams import (
        ConvertedStream as ConvertedStream,
        StreamConverter as StreamConverter,
        convert_stream as convert_stream,
    )
    from crosswalk.convert.typed import (
        from_events as from_events,
        from_response as from_response,
        to_chat_completion as to_chat_completion,
        to_events as to_events,
        to_response as to_response,
    )
    from crosswalk.formats.writing import (
        ConversionError as ConversionError,
        FoldingError as FoldingError,
        WireForm as WireForm,
    )
else:
    __getattr__, __dir__ = face(
        __name__,
        {
            "crosswalk.convert.conversion": "Conversion LossPolicy convert error_body",
            "crosswalk.convert.folding": "FoldedMessage fold unfold",
            "crosswalk.convert.report": "ConversionReport DangerousLossError Loss",
            "crosswalk.convert.rules": "Grade LossReason LossRule",
            "crosswalk.convert.streams": "ConvertedStream StreamConverter convert_stream",
            "crosswalk.convert.typed": ("from_events from_response to_chat_completion to_events to_response"),
            "crosswalk.formats.writing": "ConversionError FoldingError WireForm",
        },
    )
