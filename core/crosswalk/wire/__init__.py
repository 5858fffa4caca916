"""From bytes to parsed events: framing, and JSON within limits, without I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswalk.lazy import face

if TYPE_CHECKING:
    from crosswalk.wire import chat as chat, messages as messages, ollama as ollama, responses as responses
    from crosswalk.wire.body import (
        BodyDecoder as BodyDecoder,
    )
    from crosswalk.wire.events import (
        Halves as Halves,
        load_event as load_event,
    )
    from crosswalk.wire.framing import (
        NEED_MORE as NEED_MORE,
        CustomFraming as CustomFraming,
        Decoder as Decoder,
        Frame as Frame,
        LineDecoder as LineDecoder,
        NeedMore as NeedMore,
        PushDecoder as PushDecoder,
        is_done as is_done,
    )
    from crosswalk.wire.limits import (
        DEFAULT as DEFAULT,
        Limits as Limits,
    )
    from crosswalk.wire.ndjson import (
        NDJSONDecoder as NDJSONDecoder,
    )
    from crosswalk.wire.sniff import (
        Framing as Framing,
        SniffingDecoder as SniffingDecoder,
    )
    from crosswalk.wire.sse import (
        SSEDecoder as SSEDecoder,
        TextEventDecoder as TextEventDecoder,
    )
else:
    __getattr__, __dir__ = face(
        __name__,
        {
            "crosswalk.wire.body": "BodyDecoder",
            "crosswalk.wire.events": "Halves load_event",
            "crosswalk.wire.framing": (
                "CustomFraming Decoder Frame LineDecoder NEED_MORE NeedMore PushDecoder is_done"
            ),
            "crosswalk.wire.limits": "DEFAULT Limits",
            "crosswalk.wire.ndjson": "NDJSONDecoder",
            "crosswalk.wire.sniff": "Framing SniffingDecoder",
            "crosswalk.wire.sse": "SSEDecoder TextEventDecoder",
        },
        modules={
            "chat": "crosswalk.wire.chat",
            "messages": "crosswalk.wire.messages",
            "ollama": "crosswalk.wire.ollama",
            "responses": "crosswalk.wire.responses",
        },
    )
