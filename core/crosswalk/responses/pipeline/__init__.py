"""From events to a display: ``StreamHandler``, ``EventRouter``, ``ProcessorRegistry``, ``DisplayStrategy``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswalk.lazy import face

if TYPE_CHECKING:
    from crosswalk.responses.pipeline.handler import (
        OnFailure as OnFailure,
        StreamHandler as StreamHandler,
    )
    from crosswalk.responses.pipeline.processors import (
        CitationProcessor as CitationProcessor,
        EndProcessor as EndProcessor,
        ToolProcessor as ToolProcessor,
        default_processors as default_processors,
    )
    from crosswalk.responses.pipeline.registry import (
        EventHandler as EventHandler,
        EventKey as EventKey,
        EventRouter as EventRouter,
        PipelineError as PipelineError,
        Processor as Processor,
        ProcessorRegistry as ProcessorRegistry,
        Stage as Stage,
        StageFailure as StageFailure,
        StageKind as StageKind,
    )
    from crosswalk.responses.pipeline.source import (
        aread_events as aread_events,
        read_events as read_events,
    )
    from crosswalk.responses.pipeline.watch import (
        Places as Places,
        ProgressWatch as ProgressWatch,
    )
    from crosswalk.responses.pipeline.written import (
        WrittenProcessor as WrittenProcessor,
    )
else:
    __getattr__, __dir__ = face(
        __name__,
        {
            "crosswalk.responses.pipeline.handler": "OnFailure StreamHandler",
            "crosswalk.responses.pipeline.processors": (
                "CitationProcessor EndProcessor ToolProcessor default_processors"
            ),
            "crosswalk.responses.pipeline.registry": (
                "EventHandler EventKey EventRouter PipelineError Processor ProcessorRegistry Stage "
                "StageFailure StageKind"
            ),
            "crosswalk.responses.pipeline.source": "aread_events read_events",
            "crosswalk.responses.pipeline.watch": "Places ProgressWatch",
            "crosswalk.responses.pipeline.written": "WrittenProcessor",
        },
    )
