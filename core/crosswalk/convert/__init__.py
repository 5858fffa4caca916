"""Conversion of answers: canonical to any wire form, and canonical to typed Responses values and back.

The package can be called as its function :func:`convert`: ``crosswalk.convert(body, to="anthropic")``.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from crosswalk.lazy import face

if TYPE_CHECKING:
    from crosswalk.convert.conversion import (
        Conversion as Conversion,
        ConvertedStream as ConvertedStream,
        LossPolicy as LossPolicy,
        StreamConverter as StreamConverter,
        convert as convert,
        convert_stream as convert_stream,
        error_body as error_body,
        events_of as events_of,
        from_events as from_events,
        from_response as from_response,
        original_of as original_of,
        to_chat_completion as to_chat_completion,
        to_events as to_events,
        to_response as to_response,
    )
    from crosswalk.convert.folding import (
        FoldedMessage as FoldedMessage,
        fold as fold,
        unfold as unfold,
    )
    from crosswalk.convert.losses import (
        ConversionReport as ConversionReport,
        DangerousLossError as DangerousLossError,
        Grade as Grade,
        Loss as Loss,
        LossReason as LossReason,
        LossRule as LossRule,
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
            "crosswalk.convert.conversion": (
                "Conversion ConvertedStream LossPolicy StreamConverter convert convert_stream error_body "
                "events_of from_events from_response original_of to_chat_completion to_events to_response"
            ),
            "crosswalk.convert.folding": "FoldedMessage fold unfold",
            "crosswalk.convert.losses": (
                "ConversionReport DangerousLossError Grade Loss LossReason LossRule"
            ),
            "crosswalk.formats.writing": "ConversionError FoldingError WireForm",
        },
    )

    class _Convert(ModuleType):
        def __call__(self, *arguments: Any, **options: Any) -> Any:
            return self.convert(*arguments, **options)

    sys.modules[__name__].__class__ = _Convert
