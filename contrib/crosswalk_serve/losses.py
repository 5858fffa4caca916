"""What a form could not say, in a few words for headers and logs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from crosswalk.convert import Loss
from crosswalk.types import ChatResponse

__all__ = ["dropped", "header_of", "paths_of"]

_OWN: Final = (
    "attempts",
    "metadata.request_duration",
    "metadata.time_to_first_token",
    "metadata.provider_id",
    "metadata.model_id",
    "metadata.provenance",
)
"""What Crosswalk itself notes about an answer: no server has said it, so no client misses it."""
_MOST: Final = 20
_LONGEST: Final = 1000


def paths_of(losses: Iterable[Loss]) -> list[str]:
    """The canonical fields that *losses* name, without those that are no server's word."""
    return [loss.path for loss in losses if not loss.path.startswith(_OWN)]


def dropped(response: ChatResponse) -> list[str]:
    """The options of the request that the server which gave *response* cannot express, and was not told."""
    said = response.attempts[-1].extra.get("dropped") if response.attempts else None
    return [f"request.{one['option']}" for one in said or ()]


def header_of(paths: Iterable[str]) -> str:
    """*paths* as the value of a header: each once, in plain characters, at most 20 of them and 1,000 characters."""
    unique = list(dict.fromkeys(paths))
    said: list[str] = []
    length = 0
    for path in unique[:_MOST]:
        plain = "".join(c if " " <= c <= "~" and c != "," else "?" for c in path)
        length += len(plain) + 2
        if length > _LONGEST:
            break
        said.append(plain)
    more = len(unique) - len(said)
    return ", ".join([*said, f"and {more} more"] if more else said)
