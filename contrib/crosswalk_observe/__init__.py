"""Observe the traffic of any SDK: each exchange with a model's server becomes one canonical record.

A :class:`Watcher` copies the bytes that pass through an HTTP layer, maps them in its own thread, and passes each
:class:`ObservedExchange` to its sinks. A sink is any callable, and this package has several.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswalk.lazy import lazy

if TYPE_CHECKING:
    from crosswalk_observe.aiohttp_sessions import *
    from crosswalk_observe.context import *
    from crosswalk_observe.exchange import *
    from crosswalk_observe.log import *
    from crosswalk_observe.otel import *
    from crosswalk_observe.parquet import *
    from crosswalk_observe.patches import *
    from crosswalk_observe.record import *
    from crosswalk_observe.sinks import *
    from crosswalk_observe.urllib3_pools import *
    from crosswalk_observe.watcher import *
else:
    __getattr__, __dir__ = lazy(
        __name__,
        "aiohttp_sessions context exchange log otel parquet patches record sinks urllib3_pools watcher",
    )
