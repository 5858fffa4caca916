"""Observe the traffic of any SDK: each exchange with a model's server becomes one canonical record.

A :class:`Watcher` copies the bytes that pass through an HTTP layer, maps them in its own thread, and passes each
:class:`ObservedExchange` to its sinks. A sink is any callable, and this package has several.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswalk.lazy import face

if TYPE_CHECKING:
    from crosswalk_observe.aiohttp_sessions import (
        aiohttp_middleware as aiohttp_middleware,
    )
    from crosswalk_observe.context import (
        Labels as Labels,
        watching as watching,
    )
    from crosswalk_observe.exchange import (
        Exchange as Exchange,
    )
    from crosswalk_observe.log import (
        CaptureFolder as CaptureFolder,
        JSONLinesLog as JSONLinesLog,
    )
    from crosswalk_observe.otel import (
        OpenTelemetrySink as OpenTelemetrySink,
    )
    from crosswalk_observe.parquet import (
        ParquetLog as ParquetLog,
    )
    from crosswalk_observe.patches import (
        install as install,
        uninstall as uninstall,
    )
    from crosswalk_observe.record import (
        ObservedExchange as ObservedExchange,
        ObservedRequest as ObservedRequest,
    )
    from crosswalk_observe.sinks import (
        Sink as Sink,
    )
    from crosswalk_observe.urllib3_pools import (
        requests_adapter as requests_adapter,
        watch_bedrock as watch_bedrock,
    )
    from crosswalk_observe.watcher import (
        Watcher as Watcher,
    )
else:
    __getattr__, __dir__ = face(
        __name__,
        {
            "crosswalk_observe.aiohttp_sessions": "aiohttp_middleware",
            "crosswalk_observe.context": "Labels watching",
            "crosswalk_observe.exchange": "Exchange",
            "crosswalk_observe.log": "CaptureFolder JSONLinesLog",
            "crosswalk_observe.otel": "OpenTelemetrySink",
            "crosswalk_observe.parquet": "ParquetLog",
            "crosswalk_observe.patches": "install uninstall",
            "crosswalk_observe.record": "ObservedExchange ObservedRequest",
            "crosswalk_observe.sinks": "Sink",
            "crosswalk_observe.urllib3_pools": "requests_adapter watch_bedrock",
            "crosswalk_observe.watcher": "Watcher",
        },
    )
