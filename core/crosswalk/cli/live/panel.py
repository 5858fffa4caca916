"""The facts about an answer that are shown below it: tokens, speed, latency."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from crosswalk.cli.terminal import say
from crosswalk.errors import ConfigurationError
from crosswalk.prices import cost_of
from crosswalk.text import harmless
from crosswalk.types.metadata import Provenance, ProviderAttempt
from crosswalk.types.response import ChatResponse

__all__ = ["panel_lines", "show_panel", "tokens_line"]


def show_panel(response: ChatResponse) -> None:
    """Write the panel to standard error, drawn on a terminal and else as lines."""
    lines = [[harmless(cell) for cell in line] for line in panel_lines(response)]
    if not sys.stderr.isatty():
        for line in lines:
            say("  |  ".join(line))
        return
    from rich.console import Console
    from rich.panel import Panel
    from rich.text import Text

    text = Text("\n".join("  │  ".join(line) for line in lines), overflow="fold")
    Console(stderr=True).print(Panel(text, title="Response", title_align="left", expand=False))


def panel_lines(response: ChatResponse) -> list[list[str]]:
    """The lines of the panel, each a list of cells of one line. Unknown facts are left out.

    Latency is the time from the last request to the end of its answer, as measured here. Speed is the number of tokens
    written in that time.
    """
    seconds = _latency(response)
    count = response.usage.completion_tokens
    speed = f"Speed: {count / seconds:.1f} tok/s" if seconds and count else None
    first = response.metadata.time_to_first_token
    times = [
        speed,
        None if seconds is None else f"Latency: {_duration(seconds)}",
        None if first is None else f"TTFT: {_duration(first.total_seconds())}",
    ]
    finish = response.finish_reason.value
    raw = response.raw_finish_reason
    model, provider = response.metadata.model_id, response.metadata.provider_id
    lines = [
        [tokens_line(response)],
        [cost for cost in (_cost(response),) if cost],
        [cell for cell in times if cell is not None],
        [f"Model: {_short(model)}", f"Provider: {_short(provider)}"],
        [f"Finish: {finish}" + (f" (the provider's word: {_short(raw)})" if raw and raw != finish else "")],
        *([left_out] for left_out in _left_out(response)),
        *([attempt] for attempt in _attempts(response.attempts)),
    ]
    return [line for line in lines if line]


def _short(name: str) -> str:
    """*name*, shortened: a server may send one of any length."""
    return name if len(name) <= 100 else f"{name[:99]}…"


def _latency(response: ChatResponse) -> float | None:
    """The duration of the last attempt in seconds, or the answer's own figure if there is no attempt."""
    measured = response.attempts[-1].latency_ms if response.attempts else None
    if measured is not None:
        return measured / 1000
    return response.metadata.request_duration.total_seconds() or None


def _duration(seconds: float) -> str:
    if seconds >= 1:
        return f"{seconds:.2f}s"
    return f"{seconds * 1000:.0f}ms" if seconds >= 0.01 else f"{seconds * 1000:.1f}ms"


def tokens_line(response: ChatResponse) -> str:
    """The token counts. A count that was not sent is left out."""
    usage, provenance = response.usage, response.metadata.provenance
    if provenance.get("usage") is Provenance.ABSENT:
        return "Tokens: not reported"
    prompt, completion = (
        "unknown" if provenance.get(f"usage.{name}") is Provenance.ABSENT else str(getattr(usage, name))
        for name in ("prompt_tokens", "completion_tokens")
    )
    cached = f" ({usage.cached_tokens} cached)" if usage.cached_tokens else ""
    reasoning = f" ({usage.reasoning_tokens} reasoning)" if usage.reasoning_tokens else ""
    total = f" ({usage.total_tokens} total)" if "unknown" not in (prompt, completion) else ""
    return f"Tokens: {prompt} prompt{cached}, {completion} completion{reasoning}{total}"


def _cost(response: ChatResponse) -> str | None:
    """The cost of the answer, if the provider sent it or its price is known."""
    try:
        cost = cost_of(response)
    except ConfigurationError:  # without price lists
        return None
    if cost is None:
        return None
    return f"Cost: {'about ' if cost.provenance is Provenance.DERIVED else ''}{cost}"


def _left_out(response: ChatResponse) -> Iterator[str]:
    """The options that the provider could not take."""
    dropped = response.attempts[-1].extra.get("dropped") if response.attempts else None
    for one in dropped or ():
        yield f"Left out: {one['option']} ({one['reason']})"


def _attempts(attempts: tuple[ProviderAttempt, ...]) -> Iterator[str]:
    """The attempts, if there were several."""
    if len(attempts) < 2:
        return
    yield f"Attempts: {len(attempts)}"
    for number, attempt in enumerate(attempts, 1):
        took = "" if attempt.latency_ms is None else f" after {_duration(attempt.latency_ms / 1000)}"
        cause = "" if attempt.error is None else f": {attempt.error}"
        yield f"  {number}. {attempt.provider_name}, {attempt.model}: {attempt.outcome.value}{took}{cause}"
