"""Observe the traffic of any SDK: each exchange with a model's server becomes one canonical record.

A :class:`Watcher` copies the bytes that pass through an HTTP layer, maps them in its own thread, and passes each
:class:`ObservedExchange` to its sinks. A sink is any callable, and this package has several.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswalk.lazy import face

if TYPE_CHECKING:
    from crosswalk_observe.exchange import (
        Labels as Labels,
        ObservedExchange as ObservedExchange,
        ObservedRequest as ObservedRequest,
        WatchedExchange as WatchedExchange,
        watching as watching,
    )
    from crosswalk_observe.log import (
        CaptureFolder as CaptureFolder,
        JSONLinesLog as JSONLinesLog,
        ParquetLog as ParquetLog,
        Sink as Sink,
    )
    from crosswalk_observe.otel import (
        OpenTelemetrySink as OpenTelemetrySink,
    )
    from crosswalk_observe.patches import (
        aiohttp_middleware as aiohttp_middleware,
        install as install,
        requests_adapter as requests_adapter,
        uninstall as uninstall,
        watch_bedrock as watch_bedrock,
    )
    from crosswalk_observe.watcher import (
        Watcher as Watcher,
    )
else:
    __getattr__, __dir__ = face(
        __name__,
        {
            "crosswalk_observe.exchange": (
                "Labels ObservedExchange ObservedRequest WatchedExchange watching"
            ),
            "crosswalk_observe.log": "CaptureFolder JSONLinesLog ParquetLog Sink",
            "crosswalk_observe.otel": "OpenTelemetrySink",
            "crosswalk_observe.patches": (
                "aiohttp_middleware install requests_adapter uninstall watch_bedrock"
            ),
            "crosswalk_observe.watcher": "Watcher",
        },
    )
