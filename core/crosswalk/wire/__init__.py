"""From bytes to parsed events: framing, and JSON within limits, without I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswalk.lazy import face

if TYPE_CHECKING:
    from crosswalk.wire import chat as chat, messages as messages, ollama as ollama, responses as responses
    from crosswalk.wire.framing import (
        DEFAULT as DEFAULT,
        NEED_MORE as NEED_MORE,
        BodyDecoder as BodyDecoder,
        CustomFraming as CustomFraming,
        Decoder as Decoder,
        Frame as Frame,
        Framing as Framing,
        Halves as Halves,
        Limits as Limits,
        LineDecoder as LineDecoder,
        NDJSONDecoder as NDJSONDecoder,
        NeedMore as NeedMore,
        PushDecoder as PushDecoder,
        SniffingDecoder as SniffingDecoder,
        SSEDecoder as SSEDecoder,
        TextEventDecoder as TextEventDecoder,
        is_done as is_done,
        load_event as load_event,
    )
else:
    __getattr__, __dir__ = face(
        __name__,
        {
            "crosswalk.wire.framing": (
                "BodyDecoder CustomFraming DEFAULT Decoder Frame Framing Halves Limits LineDecoder NDJSONDecoder "
                "NEED_MORE NeedMore PushDecoder SSEDecoder SniffingDecoder TextEventDecoder is_done load_event"
            ),
        },
        modules={
            "chat": "crosswalk.wire.chat",
            "messages": "crosswalk.wire.messages",
            "ollama": "crosswalk.wire.ollama",
            "responses": "crosswalk.wire.responses",
        },
    )
