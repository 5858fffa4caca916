"""From events to a display: ``StreamHandler``, ``EventRouter``, ``ProcessorRegistry``, ``DisplayStrategy`` (seed 001)."""

from crosswalk.responses.pipeline.errors import PipelineError, StageFailure, StageKind
from crosswalk.responses.pipeline.handler import OnFailure, StreamHandler
from crosswalk.responses.pipeline.processors import (
    CitationProcessor,
    EndProcessor,
    ToolProcessor,
    default_processors,
)
from crosswalk.responses.pipeline.registry import (
    EventHandler,
    EventKey,
    EventRouter,
    Processor,
    ProcessorRegistry,
    Stage,
)
from crosswalk.responses.pipeline.source import aread_events, read_events
from crosswalk.responses.pipeline.watch import ProgressWatch
from crosswalk.responses.pipeline.written import WrittenProcessor

__all__ = [
    "CitationProcessor",
    "EndProcessor",
    "EventHandler",
    "EventKey",
    "EventRouter",
    "OnFailure",
    "PipelineError",
    "Processor",
    "ProcessorRegistry",
    "ProgressWatch",
    "Stage",
    "StageFailure",
    "StageKind",
    "StreamHandler",
    "ToolProcessor",
    "WrittenProcessor",
    "aread_events",
    "default_processors",
    "read_events",
]
