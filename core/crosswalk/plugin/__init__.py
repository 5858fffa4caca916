"""Find a provider and resolve its hooks.

Authors of plugins import :mod:`crosswalk.plugins`. The registry of this process is :data:`crosswalk.registry`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswalk.lazy import face

if TYPE_CHECKING:
    from crosswalk.plugin.hooks import (
        API as API,
        Access as Access,
        ProviderInfo as ProviderInfo,
        Recognition as Recognition,
        hookimpl as hookimpl,
        hookspec as hookspec,
    )
    from crosswalk.plugin.registry import (
        ENTRY_POINT_GROUP as ENTRY_POINT_GROUP,
        Mapper as Mapper,
        ProviderEntry as ProviderEntry,
        Registry as Registry,
        providers as providers,
    )
    from crosswalk.plugin.state import (
        MappingState as MappingState,
    )
else:
    __getattr__, __dir__ = face(
        __name__,
        {
            "crosswalk.plugin.hooks": "API Access ProviderInfo Recognition hookimpl hookspec",
            "crosswalk.plugin.registry": "ENTRY_POINT_GROUP Mapper ProviderEntry Registry providers",
            "crosswalk.plugin.state": "MappingState",
        },
    )
