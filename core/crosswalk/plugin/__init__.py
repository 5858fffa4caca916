"""Find a provider and resolve its hooks.

Authors of plugins import :mod:`crosswalk.plugins`. The registry of this process is :data:`crosswalk.registry`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswalk.lazy import imported_when_used

if TYPE_CHECKING:
    from crosswalk.plugin.hookspecs import hookimpl as hookimpl, hookspec as hookspec
    from crosswalk.plugin.info import (
        API as API,
        Access as Access,
        ProviderInfo as ProviderInfo,
        Recognition as Recognition,
    )
    from crosswalk.plugin.mapper import Mapper as Mapper
    from crosswalk.plugin.registry import (
        ENTRY_POINT_GROUP as ENTRY_POINT_GROUP,
        ProviderEntry as ProviderEntry,
        Registry as Registry,
        providers as providers,
    )
    from crosswalk.plugin.state import MappingState as MappingState
else:
    _MODULES = {
        "hookspecs": "hookimpl hookspec",
        "info": "API Access ProviderInfo Recognition",
        "mapper": "Mapper",
        "registry": "ENTRY_POINT_GROUP ProviderEntry Registry providers",
        "state": "MappingState",
    }
    _HOMES = {name: f"{__name__}.{module}" for module, names in _MODULES.items() for name in names.split()}
    __getattr__, __dir__ = imported_when_used(
        __name__, _HOMES.get, _HOMES.keys, submodules={module: f"{__name__}.{module}" for module in _MODULES}
    )
