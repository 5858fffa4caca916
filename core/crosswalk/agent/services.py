"""The service of an agent: the one you pass, or a new one for an endpoint, which the agent closes itself."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from crosswalk.errors import ConfigurationError

if TYPE_CHECKING:
    from crosswalk.service import Endpoint, LLMService, SyncLLMService


def check_type(option: str, value: object, kind: Any) -> None:
    """Raise unless *value* is ``None`` or an instance of *kind*.

    Args:
        option: the name of the option, for the error.
        value: its value.
        kind: a class, or ``Callable``.

    Raises:
        ConfigurationError: *value* has another type.
    """
    if value is not None and not isinstance(value, kind):
        wanted = "a function" if kind is Callable else kind.__name__
        raise ConfigurationError(f"{option} must be {wanted}, not {type(value).__name__}", key=option)


def async_service(service: LLMService | Endpoint | str) -> LLMService:
    """Return *service*, or a new service for that endpoint.

    Raises:
        ConfigurationError: *service* is neither, or synchronous.
    """
    from crosswalk.service import Endpoint, LLMService

    if isinstance(service, Endpoint | str):
        return LLMService(service)
    _check_service(service, is_async=True)
    return service


def sync_service(service: SyncLLMService | Endpoint | str) -> SyncLLMService:
    """:func:`async_service` for programs without an event loop."""
    from crosswalk.service import Endpoint, SyncLLMService

    if isinstance(service, Endpoint | str):
        return SyncLLMService(service)
    _check_service(service, is_async=False)
    return service


def _check_service(service: object, *, is_async: bool) -> None:
    from crosswalk.service import SyncLLMService

    complete = getattr(service, "complete", None)
    is_other = isinstance(service, SyncLLMService) if is_async else inspect.iscoroutinefunction(complete)
    if is_other or not callable(complete) or isinstance(service, type):
        wanted = "LLMService" if is_async else "SyncLLMService"
        raise ConfigurationError(f"service must be {wanted}, not {type(service).__name__}", key="service")


class AsyncServiceOwner:
    """An agent that asks a service, and closes it if the agent made it from an endpoint.

    Args:
        service: a service, or an endpoint such as ``"ollama:llama3.2"``.

    Raises:
        ConfigurationError: *service* is neither, or synchronous.
    """

    def __init__(self, service: LLMService | Endpoint | str) -> None:
        self._service = async_service(service)
        self._is_owner = self._service is not service

    async def aclose(self) -> None:
        """Close the service, if the agent made it from an endpoint."""
        if self._is_owner:
            await self._service.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class SyncServiceOwner:
    """:class:`AsyncServiceOwner` without ``await``."""

    def __init__(self, service: SyncLLMService | Endpoint | str) -> None:
        self._service = sync_service(service)
        self._is_owner = self._service is not service

    def close(self) -> None:
        """Close the service, if the agent made it from an endpoint."""
        if self._is_owner:
            self._service.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
