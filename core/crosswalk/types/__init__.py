"""The canonical vocabulary: immutable values, validated when made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswalk.lazy import lazy

if TYPE_CHECKING:
    from crosswalk.types.builder import *
    from crosswalk.types.delta import *
    from crosswalk.types.event import *
    from crosswalk.types.filter import *
    from crosswalk.types.finish import *
    from crosswalk.types.json import *
    from crosswalk.types.logprob import *
    from crosswalk.types.message import *
    from crosswalk.types.metadata import *
    from crosswalk.types.raw import *
    from crosswalk.types.response import *
    from crosswalk.types.segment import *
    from crosswalk.types.tools import *
    from crosswalk.types.usage import *
else:
    _modules = (
        "builder delta event filter finish json logprob message metadata raw response segment tools usage"
    )
    __getattr__, __dir__ = lazy(__name__, _modules)
