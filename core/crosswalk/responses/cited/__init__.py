"""The sources of a response: their numbers, their positions in the text, and their compression."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswalk.lazy import face

if TYPE_CHECKING:
    from crosswalk.responses.cited.citations import (
        Citation as Citation,
        CitationMarker as CitationMarker,
        CompressionMode as CompressionMode,
        CompressionReport as CompressionReport,
    )
    from crosswalk.responses.cited.response import (
        CitedResponse as CitedResponse,
    )
else:
    __getattr__, __dir__ = face(
        __name__,
        {
            "crosswalk.responses.cited.citations": (
                "Citation CitationMarker CompressionMode CompressionReport"
            ),
            "crosswalk.responses.cited.response": "CitedResponse",
        },
    )
