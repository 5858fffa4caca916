"""Requests of clients, in any of the written formats, as canonical requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswalk.lazy import face

if TYPE_CHECKING:
    from crosswalk.service.client_requests.incoming import (
        ClientRequest as ClientRequest,
        Incoming as Incoming,
        Wants as Wants,
    )
    from crosswalk.service.client_requests.read import (
        read_request as read_request,
    )
else:
    __getattr__, __dir__ = face(
        __name__,
        {
            "crosswalk.service.client_requests.incoming": "ClientRequest Incoming Wants",
            "crosswalk.service.client_requests.read": "read_request",
        },
    )
