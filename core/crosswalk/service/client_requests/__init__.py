"""Requests of clients, in any of the written formats, as canonical requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswalk.lazy import lazy

if TYPE_CHECKING:
    from crosswalk.service.client_requests.read import *
else:
    __getattr__, __dir__ = lazy(__name__, "read")
