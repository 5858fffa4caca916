"""From events to a display: ``StreamHandler``, ``EventRouter``, ``ProcessorRegistry``, ``DisplayStrategy``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswalk.lazy import lazy

if TYPE_CHECKING:
    from crosswalk.responses.pipeline.handler import *
    from crosswalk.responses.pipeline.processors import *
    from crosswalk.responses.pipeline.registry import *
    from crosswalk.responses.pipeline.source import *
    from crosswalk.responses.pipeline.watch import *
    from crosswalk.responses.pipeline.written import *
else:
    __getattr__, __dir__ = lazy(__name__, "handler processors registry source watch written")
