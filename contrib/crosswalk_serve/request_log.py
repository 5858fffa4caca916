"""The record of a request in the log and the metrics."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from crosswalk_serve.gateway import Gateway
from crosswalk_serve.losses import header_of

__all__ = ["record_request"]

_log = logging.getLogger("crosswalk.serve")


def record_request(
    gateway: Gateway,
    id: str,
    form: str,
    model: str,
    key: str | None,
    status: int,
    seconds: float,
    dropped: Sequence[str] = (),
) -> None:
    """Count a request, and log how it ended.

    Args:
        gateway: the state that all requests share.
        id: the id of the request.
        form: the client's form, or the path of another request.
        model: the name of the model in the file, or empty.
        key: the name of the key in the file, or ``None``.
        status: the HTTP status.
        seconds: the time that it took.
        dropped: the fields that did not reach the server or the client.
    """
    key = key or ""
    if gateway.metrics is not None:
        gateway.metrics.requests.labels(form, model, key, str(status)).inc()
        gateway.metrics.seconds.labels(form, model).observe(seconds)
        if dropped:
            gateway.metrics.dropped.labels(form, model).inc()
    omitted = header_of(dropped)
    extra = {
        "crosswalk.request.id": id,
        "crosswalk.form": form,
        "crosswalk.key": key,
        "crosswalk.dropped": omitted,
        "gen_ai.request.model": model,
        "http.response.status_code": status,
    }
    text = f"{form} {model or '-'} {key or '-'} {status} {seconds:.3f}s{omitted and f' dropped: {omitted}'}"
    _log.info("%s %s", id, text, extra=extra)
