"""The entry point that ``opentelemetry-instrument`` finds, so that a program is watched without a change."""

from __future__ import annotations

from typing import Any

from crosswalk_observe.otel import OpenTelemetrySink
from crosswalk_observe.patches import install, uninstall
from crosswalk_observe.watcher import Watcher


class Instrumentor:
    """Installs a watcher with an :class:`OpenTelemetrySink`, with the methods that OpenTelemetry calls.

    ``OTEL_PYTHON_DISABLED_INSTRUMENTATIONS=crosswalk`` turns it off.
    """

    def __init__(self) -> None:
        self._watcher: Watcher | None = None

    def instrument(self, **options: Any) -> None:
        """Watch every client of the process. A second call has no effect.

        Args:
            options: ``tracer_provider``, ``meter_provider`` and ``logger_provider``, or nothing for the global ones.
                Others are ignored.
        """
        if self._watcher is None:
            names = ("tracer_provider", "meter_provider", "logger_provider")
            self._watcher = Watcher(OpenTelemetrySink(*map(options.get, names)))
            install(self._watcher)

    def uninstrument(self, **options: Any) -> None:
        """Stop watching, and wait until the spans have ended."""
        if self._watcher is not None:
            uninstall()
            self._watcher.close()
            self._watcher = None
