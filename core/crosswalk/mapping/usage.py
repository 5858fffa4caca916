"""The usage reports of one stream: a later one counts, field by field, and none of them goes unseen."""

from __future__ import annotations

from typing import Any

import attrs

from crosswalk.types.metadata import Provenance
from crosswalk.types.usage import UsageInfo

__all__ = ["UsageReports"]


class UsageReports:
    """What a provider has reported so far (design, section 5).

    Args:
        provenance: says of a count whether the last report had it at all.

    Attributes:
        latest: the counts so far; ``None`` before the first report.
        shown: the last counts that a delta carried; ``None`` while none did.
    """

    def __init__(self, provenance: dict[str, Provenance]) -> None:
        self._provenance = provenance
        self.latest: UsageInfo | None = None
        self.shown: UsageInfo | None = None

    def unseen(self, usage: UsageInfo) -> UsageInfo | None:
        """The report that no delta has carried and that *usage* is about to replace; ``None`` without one."""
        return None if self.latest in (None, self.shown, usage) else self.latest

    def add(self, usage: UsageInfo) -> UsageInfo:
        """Take a report: what it does not say, an earlier one still does. Gives the counts so far."""
        self.latest = usage if self.latest is None else self._over(self.latest, usage)
        return self.latest

    def _over(self, old: UsageInfo, new: UsageInfo) -> UsageInfo:
        changes: dict[str, Any] = {
            name: getattr(old, name)
            for name in ("cached_tokens", "reasoning_tokens", "cache_write_tokens")
            if getattr(new, name) is None
        }
        for name in ("prompt_tokens", "completion_tokens"):
            if self._provenance.get(f"usage.{name}") is Provenance.ABSENT and getattr(old, name):
                changes[name] = getattr(old, name)
                del self._provenance[f"usage.{name}"]
        return attrs.evolve(new, **changes) if changes else new
