"""A gateway: any client's form in, any provider out. Needs the extra ``serve``.

:func:`create_app` returns the application for any ASGI server that a :class:`Config` describes. :func:`load_config` reads a
configuration from a file, and :func:`read_config` from text. ``crosswalk serve`` runs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswalk.lazy import face

if TYPE_CHECKING:
    from crosswalk_serve.app import (
        create_app as create_app,
    )
    from crosswalk_serve.config import (
        Config as Config,
        load_config as load_config,
        read_config as read_config,
    )
    from crosswalk_serve.gateway import (
        Gateway as Gateway,
    )
else:
    __getattr__, __dir__ = face(
        __name__,
        {
            "crosswalk_serve.app": "create_app",
            "crosswalk_serve.config": "Config load_config read_config",
            "crosswalk_serve.gateway": "Gateway",
        },
    )
