"""Validated values from the text that a model wrote, or the reason why there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswalk.lazy import lazy

if TYPE_CHECKING:
    from crosswalk.structured.cache import *
    from crosswalk.structured.chain import *
    from crosswalk.structured.default_cache import *
    from crosswalk.structured.metrics import *
    from crosswalk.structured.parser import *
    from crosswalk.structured.reason import *
    from crosswalk.structured.response import *
    from crosswalk.structured.response_parser import *
    from crosswalk.structured.result import *
    from crosswalk.structured.schema import *
    from crosswalk.structured.versions import *
else:
    __getattr__, __dir__ = lazy(
        __name__,
        "cache chain default_cache metrics parser reason response response_parser result schema versions",
    )
