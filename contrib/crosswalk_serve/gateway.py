"""The state that all requests of a gateway share."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from time import time
from typing import Any, Final

import attrs
from starlette.requests import HTTPConnection

from crosswalk.errors import ErrorInfo, ErrorKind
from crosswalk.service import Observer
from crosswalk.text import clean_message
from crosswalk_serve.config import Config
from crosswalk_serve.http_errors import Refusal
from crosswalk_serve.http_reply import Interruptible
from crosswalk_serve.kept_state import KeptState
from crosswalk_serve.keys import Caller, Counters, Keyring, MemoryCounters, Quotas, RedisCounters, connect
from crosswalk_serve.logs import AttemptLog, ExchangeLog
from crosswalk_serve.routing import Route, Router
from crosswalk_serve.stored_responses import Conversations, Documents, MemoryDocuments, RedisDocuments
from crosswalk_serve.telemetry import Metrics

_log = logging.getLogger("crosswalk.serve")
_ENDS = ErrorInfo(
    ErrorKind.SERVER, "the gateway is being shut down", retryable=True, status=503, code="shutting_down"
)


_RELOADED: Final = ("models", "keys", "timeouts", "retry", "on_unsupported")
"""The sections that :meth:`Gateway.reload` takes. The others belong to open resources, such as sockets and files."""


class Gateway:
    """The models, keys, metrics and logs of a gateway, and the running requests.

    Args:
        config: the configuration.
        clock: returns seconds since 1970. The limits of keys are counted by it.
        service_options: further arguments for each :class:`~crosswalk.service.LLMService`.

    Attributes:
        config: the configuration.
        router: the models.
        keyring: the keys.
        quotas: the use of the keys.
        conversations: the stored conversations that a request may continue.
        kept_state: what servers and the gateway keep for each key besides conversations.
        metrics: the metrics for Prometheus, or ``None`` without them.
        exchanges: the log of exchanges, or ``None`` without one.
        is_draining: whether the gateway is shutting down.

    Raises:
        ConfigurationError: something in *config* is impossible, or an extra is not installed.
        PluginError: a plugin is broken.
    """

    def __init__(self, config: Config, *, clock: Callable[[], float] = time, **service_options: Any) -> None:
        self.config = config
        self.metrics = Metrics() if config.metrics else None
        self._observers: list[Observer] = [AttemptLog()]
        self._service_options = service_options
        if self.metrics is not None:
            self._observers.append(self.metrics.observer())
        if config.tracing:
            from crosswalk.service import OpenTelemetry

            self._observers.append(OpenTelemetry())
        self.router = Router(config, self._observers, **service_options)
        self.keyring = Keyring(config.keys)
        self._redis = None if config.redis is None else connect(config.redis.url.reveal())
        counters: Counters = MemoryCounters(clock)
        # Without Redis, each of several processes would only have its own answers, and a client reaches any of them.
        stored = config.responses if config.listen.workers == 1 else attrs.evolve(config.responses, entries=0)
        documents: Documents = MemoryDocuments(stored)
        ids: Documents = MemoryDocuments(stored)  # of their own, so that they displace no answers
        if config.redis is not None and self._redis is not None:
            counters = RedisCounters(self._redis, config.redis.prefix)
            documents = ids = RedisDocuments(self._redis, config.redis.prefix, config.responses)
        self.quotas = Quotas(counters, clock)
        self.conversations = Conversations(documents)
        self.kept_state = KeptState(ids)
        self.exchanges = None if config.log.exchanges is None else ExchangeLog(config.log.exchanges)
        self.is_draining = False
        self._running: set[Interruptible] = set()
        self._count = 0
        self._uses: Counter[Router] = Counter()  # the requests by the router that was current when they began
        self._closing: set[asyncio.Task[None]] = set()
        self._is_idle = asyncio.Event()  # set when the gateway is shutting down and no request runs

    # Requests.

    def caller(self, request: HTTPConnection) -> Caller:
        """Return the caller of *request*. If the request has no valid key, log its address.

        Raises:
            Refusal: the request has no valid key.
        """
        try:
            return self.keyring.caller(request.headers)
        except Refusal:
            address = "-" if request.client is None else clean_message(request.client.host, 60)
            _log.info("no valid key from %s", address, extra={"client.address": address})
            raise

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Reserve a place for one more request.

        Raises:
            Refusal: all places are taken, or the gateway is shutting down.
        """
        if self.is_draining:
            raise Refusal(_ENDS.kind, _ENDS.message, status=503, code=_ENDS.code, retry_after=1)
        if self._count >= self.config.limits.concurrent_requests:
            raise Refusal(
                ErrorKind.SERVER, "too many requests at once", status=503, code="overloaded", retry_after=1
            )
        router = self.router
        self._count += 1
        self._uses[router] += 1
        try:
            yield
        finally:
            self._count -= 1
            self._uses[router] -= 1
            self._close_if_unused(router)
            self._note_idle()

    @contextmanager
    def running(self, block: Interruptible, caller: Caller) -> Iterator[None]:
        """Run *block* for *caller*. The end of the gateway ends it.

        Raises:
            Refusal: the key of *caller* has reached its limit of concurrent requests.
        """
        with self.quotas.place(caller), self._noted(block):
            yield

    @contextmanager
    def _noted(self, block: Interruptible) -> Iterator[None]:
        self._running.add(block)
        if self.metrics is not None:
            self.metrics.running.inc()
        try:
            yield
        finally:
            self._running.discard(block)
            if self.metrics is not None:
                self.metrics.running.dec()

    def route(self, caller: Caller, model: str | None) -> Route:
        """Return the route for requests of *caller* for *model*.

        Raises:
            Refusal: the model does not exist, or this caller may not use it. The message is the same for both.
        """
        route = None if model is None else self.router.find(model)
        if route is None or not caller.may_ask(route.name):
            raise Refusal(
                ErrorKind.MODEL_UNAVAILABLE, "there is no such model here", status=404, code="model_not_found"
            )
        return route

    def models(self, caller: Caller) -> list[str]:
        """Return the names of the models that *caller* may ask for, without patterns."""
        return [
            name
            for name in self.router.names
            if not name.endswith("*") and (route := self.router.find(name)) and caller.may_ask(route.name)
        ]

    # Reload.

    def reload(self, config: Config) -> tuple[str, ...]:
        """Take models, keys, prices, timeouts and retries from *config*. Running requests end with the old ones.

        Returns:
            The sections that differ and need a restart.

        Raises:
            ConfigurationError: *config* is wrong. Nothing has changed.
            PluginError: a plugin is broken. Nothing has changed.
        """
        router = Router(config, self._observers, **self._service_options)
        old, self.router = self.router, router
        self.keyring = Keyring(config.keys)
        names = [field.name for field in attrs.fields(Config) if field.name not in _RELOADED]
        stored = tuple(name for name in names if getattr(config, name) != getattr(self.config, name))
        self.config = attrs.evolve(self.config, **{name: getattr(config, name) for name in _RELOADED})
        self._close_if_unused(old)
        return stored

    def _close_if_unused(self, router: Router) -> None:
        """Close the connections of *router* if a newer one has replaced it and none of its requests runs any more."""
        if router is not self.router and not self._uses[router]:
            del self._uses[router]
            task = asyncio.get_running_loop().create_task(router.aclose())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    # Shutdown.

    def drain(self) -> None:
        """Accept no more requests. Running ones may continue for ``shutdown_seconds``."""
        if not self.is_draining:
            self.is_draining = True
            loop = asyncio.get_running_loop()
            loop.call_later(self.config.limits.shutdown_seconds, self.end_all)
            self._note_idle()

    async def drained(self) -> None:
        """Call :meth:`drain` and wait until no request runs, or until the time for it is over."""
        self.drain()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._is_idle.wait(), self.config.limits.shutdown_seconds)

    def _note_idle(self) -> None:
        if self.is_draining and not self._count:
            self._is_idle.set()

    def end_all(self) -> None:
        """End the running requests, each in the form of its client."""
        if self._running:
            _log.warning("ending %d answers: the time for shutting down is over", len(self._running))
        for block in list(self._running):
            block.interrupt(_ENDS)

    async def aclose(self) -> None:
        """Close all connections."""
        async with AsyncExitStack() as stack:
            if self._redis is not None:
                stack.push_async_callback(self._redis.aclose)
            for router in {self.router, *self._uses}:
                stack.push_async_callback(router.aclose)
            await asyncio.gather(*self._closing)
