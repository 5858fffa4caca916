"""Detects the provider of a server that is given by its address alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from crosswalk.errors import ConfigurationError
from crosswalk.plugin.registry import Registry
from crosswalk.service.auxiliary_requests import fetch, json_of, names_of_models
from crosswalk.service.endpoint import DISCOVERED, Route, resolve, where
from crosswalk.service.setup import Setup

_OWNERS = {
    "vllm": "vllm",
    "sglang": "sglang",
    "llamacpp": "llamacpp",
    "library": "ollama",
    "organization_owner": "lmstudio",
}
"""The provider by the owner of the models of ``/v1/models``, for the servers that set it."""


class ServerDiscovery:
    """Detects each server's provider with the first call, by ``/api/tags`` and ``/v1/models``, and remembers it.

    If a server lists a single model, it is the model of requests that name none.

    Args:
        registry: the registry of providers.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._found: dict[str, tuple[str, tuple[str, ...]]] = {}

    async def resolve(self, setup: Setup, *, needs_model: bool) -> Setup:
        """Return *setup* with the routes of all servers.

        Args:
            setup: the state that all calls of a service share.
            needs_model: whether the request names no model.

        Raises:
            ConfigurationError: a server's provider cannot be detected, or it lists several models and none is named.
            ProviderError: a server cannot be reached.
        """
        routes = [
            await self._resolved(setup, route, needs_model) if route.provider == DISCOVERED else route
            for route in setup.routes
        ]
        return attrs.evolve(setup, routes=tuple(routes), discovery=None)

    async def _resolved(self, setup: Setup, route: Route, needs_model: bool) -> Route:
        result = self._found.get(route.base_url)
        if result is None:
            result = self._found[route.base_url] = await _asked(setup, route)
        provider, models = result
        model = route.endpoint.model or (models[0] if len(models) == 1 else None)
        if model is None and needs_model:
            raise ConfigurationError(
                f"{where(route.host)} has several models; name one: {', '.join(models)}", key="model"
            )
        known = resolve(
            attrs.evolve(route.endpoint, provider=provider, model=model), self._registry.mapper(provider)
        )
        return attrs.evolve(known, headers={**known.headers, **route.headers})


async def _asked(setup: Setup, route: Route) -> tuple[str, tuple[str, ...]]:
    """Return the provider of the server at *route*, and its models."""
    for path in ("/v1/models", "/api/tags"):
        answer = await fetch(setup, route, "GET", path)
        if answer.status == 404:
            continue
        listed = json_of(answer, route, path)
        if isinstance(listed.get("models"), list) and path == "/api/tags":
            return "ollama", names_of_models(listed)
        if isinstance(listed.get("data"), list):
            return _owner(listed), names_of_models(listed)
    raise ConfigurationError(
        f"{where(route.host)} does not say what it is, at /v1/models or /api/tags; name the provider, "
        "such as 'vllm' or 'ollama'",
        key="provider",
    )


def _owner(listed: Mapping[str, Any]) -> str:
    """Return the provider with such a list of models, or ``openai`` for any other that speaks its dialect."""
    owners = [model.get("owned_by") for model in listed["data"] if isinstance(model, dict)]
    return next((_OWNERS[owner] for owner in owners if owner in _OWNERS), "openai")
