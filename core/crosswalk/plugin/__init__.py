"""Find a provider, resolve its hooks."""

from crosswalk.plugin.hookspecs import hookimpl, hookspec
from crosswalk.plugin.info import API, Access, ProviderInfo, Recognition
from crosswalk.plugin.mapper import Mapper
from crosswalk.plugin.registry import ENTRY_POINT_GROUP, ProviderEntry, Registry, providers, registry
from crosswalk.plugin.state import MappingState

__all__ = [
    "API",
    "ENTRY_POINT_GROUP",
    "Access",
    "Mapper",
    "MappingState",
    "ProviderEntry",
    "ProviderInfo",
    "Recognition",
    "Registry",
    "hookimpl",
    "hookspec",
    "providers",
    "registry",
]
