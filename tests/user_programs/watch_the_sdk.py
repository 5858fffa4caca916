"""Watch what the SDKs of a program ask and get."""

from __future__ import annotations

from crosswalk import cost_of
from crosswalk_observe import JSONLinesLog, ObservedExchange, OpenTelemetrySink, Watcher, install, uninstall

seen: list[ObservedExchange] = []
watcher = Watcher(JSONLinesLog("exchanges.jsonl"), OpenTelemetrySink(), seen.append)
install(watcher)
watcher.flush()
for record in seen:
    request, response = record.request, record.response
    print(record.status, record.duration, record.is_complete, record.time_to_first_chunk)
    print(record.url, request.headers["host"], None if request.model is None else request.model.upper())
    if response is not None:
        cost = cost_of(response)
        print(response.text, response.usage.total_tokens, None if cost is None else cost.amount)
uninstall()
watcher.close()
