"""The client metrics of OpenTelemetry's GenAI semantic conventions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from crosswalk.version import __version__

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider


SCHEMA_URL: Final = "https://opentelemetry.io/schemas/gen-ai-dev/1.42.0-dev"
"""The edition of the conventions whose names are used, from their repository's ``model/manifest.yaml``."""
# The conventions' own advice on how to divide seconds and tokens.
_SECONDS: Final = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_TOKENS: Final = (
    *(1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864),
)
_INFERENCE: Final = {"chat", "generate_content", "text_completion"}
_USAGE: Final = {
    "input_tokens": "How many tokens were put in, with those from a cache.",
    "output_tokens": "How many tokens came out, with those of the reasoning.",
    "cache_read.input_tokens": "How many tokens were read from a cache.",
    "cache_write.input_tokens": "How many tokens were written to a cache.",
    "reasoning.output_tokens": "How many tokens the reasoning took.",
}
_MODALITIES: Final = ("text", "audio", "image")
_MOST_VALUES: Final = 100
_LABELS: Final = ("gen_ai.provider.name", "gen_ai.response.model", "error.type")
_UNBOUNDED: Final = {"gen_ai.request.model", "gen_ai.response.model", "error.type", "server.address"}


class ClientMetrics:
    """The metrics of calls to models.

    Args:
        name: the name of the instrumentation.
        meter_provider: makes the metrics, or ``None`` for the global one.
    """

    def __init__(self, name: str, meter_provider: MeterProvider | None = None) -> None:
        from opentelemetry.metrics import get_meter

        meter = get_meter(name, __version__, meter_provider, SCHEMA_URL)

        def histogram(name: str, unit: str, bounds: tuple[float, ...], description: str) -> Any:
            return meter.create_histogram(
                f"gen_ai.client.{name}", unit, description, explicit_bucket_boundaries_advisory=bounds
            )

        self._inference = histogram("inference.duration", "s", _SECONDS, "How long an inference took.")
        self._operation = histogram("operation.duration", "s", _SECONDS, "How long another operation took.")
        self._first_chunk = histogram(
            "inference.time_to_first_chunk", "s", _SECONDS, "How long the first piece of a stream took."
        )
        self._next_chunks = histogram(
            "inference.time_per_output_chunk", "s", _SECONDS, "How long each later piece of a stream took."
        )
        self._per_call = {
            kind: histogram(
                f"inference.operation.{kind}_tokens", "{token}", _TOKENS, f"{kind.title()} tokens of a call."
            )
            for kind in ("input", "output")
        }
        self._usage = {
            kind: meter.create_counter(f"gen_ai.client.inference.usage.{kind}", "{token}", description)
            for kind, description in _USAGE.items()
        }
        self._values: dict[str, set[str]] = {}

    def record(
        self,
        results: Mapping[str, Any],
        common: Mapping[str, Any],
        took: timedelta,
        chunk_times: Iterable[float] = (),
    ) -> None:
        """Record a call.

        Args:
            results: the attributes of its result.
            common: the attributes of span and metrics. Names of models, errors and servers count up to 100 each.
            took: its duration.
            chunk_times: when each piece of a stream came, in seconds since any moment.
        """
        labels = {**common, **{name: results[name] for name in _LABELS if name in results}}
        for name in _UNBOUNDED & labels.keys():
            labels[name] = self._series_of(name, labels[name])
        operation = labels["gen_ai.operation.name"]
        (self._inference if operation in _INFERENCE else self._operation).record(took.total_seconds(), labels)
        first = results.get("gen_ai.response.time_to_first_chunk")
        if first is not None:
            self._first_chunk.record(first, labels)
        for before, after in pairwise(chunk_times):
            self._next_chunks.record(after - before, labels)
        if operation != "fetch_response":  # its tokens were counted when it was made
            self._record_tokens(results, labels)

    def _record_tokens(self, results: Mapping[str, Any], labels: Mapping[str, Any]) -> None:
        for kind, histogram in self._per_call.items():
            if (count := results.get(f"gen_ai.usage.{kind}_tokens")) is not None:
                histogram.record(count, labels)
        for kind, counter in self._usage.items():
            remaining = results.get(f"gen_ai.usage.{kind}")
            if remaining is None:
                continue
            for modality in _MODALITIES:
                count = results.get(f"gen_ai.usage.{modality}.{kind}", 0)
                if count:
                    counter.add(count, {**labels, "gen_ai.token.modality": modality})
                    remaining -= count
            if remaining > 0:
                counter.add(remaining, {**labels, "gen_ai.token.modality": "unknown"})

    def _series_of(self, name: str, value: str) -> str:
        """Return *value* of *name* while its values are few: each is a separate series, chosen by users and servers."""
        values = self._values.setdefault(name, set())
        if value not in values and len(values) >= _MOST_VALUES:
            return "_OTHER"
        values.add(value)
        return value
