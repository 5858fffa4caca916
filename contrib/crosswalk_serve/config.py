"""The types of the gateway's configuration file. :func:`crosswalk_serve.reading.load_config` reads it.

Every class here is a section of the file. ``docs/serve-configuration.md`` is generated from their docstrings.
"""

from __future__ import annotations

import hmac
import ipaddress
import math
import re
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

import attrs

from crosswalk.convert import WireForm
from crosswalk.errors import ConfigurationError
from crosswalk.service import Endpoint, RetryPolicy, Secret, Timeouts

MIB = 1024 * 1024


def _above(least: float, *, whole: bool = False) -> Any:
    """A validator: ``None``, or a number above *least*."""

    def check(_: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
        if value is not None and not (least < value < math.inf):
            what = "whole number" if whole else "number"
            raise ConfigurationError(f"expected a {what} above {least:g}", key=attribute.name)

    return check


_POSITIVE = _above(0)
_COUNT = _above(0, whole=True)


@attrs.frozen(kw_only=True)
class Patience(Timeouts):
    """Limits of one attempt at a server, and of a whole call, in seconds."""

    total: float | None = attrs.field(default=600.0, validator=_POSITIVE)


@attrs.frozen(kw_only=True)
class Repetition(RetryPolicy):
    """When and how often a failed attempt is repeated.

    The client of a gateway repeats requests itself, so it learns of a long ``Retry-After`` at once. A repetition that may be
    paid twice is the operator's decision.
    """

    max_retry_after: float = attrs.field(
        default=2.0, validator=attrs.fields(RetryPolicy).max_retry_after.validator
    )
    repeat_started: bool = False


@attrs.frozen(kw_only=True)
class Target:
    """A server that serves a model.

    Attributes:
        provider: the provider id of its dialect, as ``crosswalk providers`` lists them.
        model: the server's name of the model, by default the client's.
        base_url: the address, by default from the environment, otherwise the provider's own.
        api_key: the key, by default from the environment.
        headers: additional headers for every request. Their values are secrets.
        takes_media: whether the model accepts images, audio and files.
        weight: its share of first attempts. With weights 3 and 1, the first gets three quarters. A server without a weight
            in a list with weights is asked only after the others have failed.
        options: fields for the body of every request, in the words of its API.
        formats: further formats of the server, ``messages`` or ``responses``. If a client speaks one of them, the server is
            asked in it, without a conversion. Needs a ``base_url``.
        counts_tokens: whether it has Anthropic's ``/v1/messages/count_tokens``. By default, ``anthropic`` has, ``vllm`` and
            ``llamacpp`` are tried, and for others the gateway estimates.
    """

    provider: str
    model: str | None = None
    base_url: str | None = None
    api_key: Secret | None = None
    headers: Mapping[str, Secret] = attrs.field(factory=dict)
    takes_media: bool = True
    weight: float | None = attrs.field(default=None, validator=_POSITIVE)
    options: Mapping[str, Any] = attrs.field(factory=dict)
    formats: tuple[Literal["messages", "responses"], ...] = ()
    counts_tokens: bool | None = None

    def __attrs_post_init__(self) -> None:
        if self.formats and self.base_url is None:
            raise ConfigurationError("other formats need the address of the server", key="base_url")

    def in_format(self, form: WireForm) -> Target:
        """Return the same server, asked in *form* if it has that format.

        Its key is sent in the server's own header, too. Without a key, none of the environment's is sent.
        """
        if form.key not in self.formats:
            return self
        key = self.api_key or Secret("none")
        headers = {"Authorization": Secret(f"Bearer {key.reveal()}"), **self.headers}
        return attrs.evolve(self, provider=form.provider, api_key=key, headers=headers, formats=())

    def endpoint(self) -> Endpoint:
        """The endpoint for the service.

        Raises:
            ConfigurationError: a credential or a header that HTTP cannot carry.
        """
        return Endpoint(
            self.provider,
            model=self.model,
            base_url=self.base_url,
            api_key=self.api_key,
            headers=self.headers,
            takes_media=self.takes_media,
        )


@attrs.frozen(kw_only=True)
class Price:
    """The price of a model for budgets, by default from the price lists (``crosswalk-llm[prices]``).

    Attributes:
        input_per_million: US dollars for a million tokens of the prompt.
        output_per_million: US dollars for a million tokens of the answer.
    """

    input_per_million: float = attrs.field(validator=_above(-1))
    output_per_million: float = attrs.field(validator=_above(-1))


@attrs.frozen(kw_only=True)
class Model:
    """The servers of a model. You may write the list of endpoints, or one endpoint, in place of the section.

    Attributes:
        endpoints: the servers in order. The next one is asked after a failure.
        aliases: other names of the model.
        defaults: options for requests without them, in Crosswalk's words: ``temperature``, ``max_tokens`` …
        timeouts: limits of an attempt and a call, by default the gateway's.
        retry: the retry policy, by default the gateway's.
        on_unsupported: like the gateway's, for this model.
        price: the price of the model.
    """

    endpoints: tuple[Target, ...] = attrs.field()
    aliases: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = attrs.field(factory=dict)
    timeouts: Patience | None = None
    retry: Repetition | None = None
    on_unsupported: Literal["refuse", "drop"] | None = None
    price: Price | None = None

    @endpoints.validator
    def _check_endpoints(self, _: Any, endpoints: tuple[Target, ...]) -> None:
        if not endpoints:
            raise ConfigurationError("a model needs an endpoint", key="endpoints")


@attrs.frozen
class KeyHash:
    """The stored hash of a key.

    Keys are long and random, so a salted SHA-256 is as good as a slow hash, and no request waits for it.

    Args:
        salt: makes equal keys different.
        digest: of the salt and the key.
    """

    salt: bytes = attrs.field(repr=False)
    digest: bytes = attrs.field(repr=False)

    @classmethod
    def of(cls, key: str, salt: bytes) -> KeyHash:
        """The hash of *key*."""
        return cls(salt, sha256(salt + key.encode()).digest())

    @classmethod
    def parse(cls, text: str) -> KeyHash:
        """Parse the text that ``str`` writes.

        Raises:
            ConfigurationError: *text* is not a hash. The message does not quote it, because it may be a key.
        """
        result = re.fullmatch(r"sha256:((?:[0-9a-f]{2}){8,32}):([0-9a-f]{64})", text)
        if result is None:
            raise ConfigurationError("expected a hash, as `crosswalk serve --new-key` prints it")
        return cls(bytes.fromhex(result[1]), bytes.fromhex(result[2]))

    def fits(self, key: str) -> bool:
        """Whether it is the hash of *key*, compared in constant time."""
        return hmac.compare_digest(self.digest, KeyHash.of(key, self.salt).digest)

    def __str__(self) -> str:
        return f"sha256:{self.salt.hex()}:{self.digest.hex()}"


@attrs.frozen(kw_only=True)
class Key:
    """A client's key with its rights and limits.

    Attributes:
        hash: the hash of the key. ``crosswalk serve --new-key`` prints both.
        models: the models that it may use, with ``*`` at the end of a name for any ending. All by default, none with ``[]``.
        concurrent_requests: the most requests at once, in each process of the gateway, unlimited by default.
        requests_per_minute: the most requests in a minute, unlimited by default.
        tokens_per_minute: the most tokens in a minute, prompts and answers together. At the limit, requests are refused.
        budget_per_day: the most US dollars in a day that begins at midnight UTC. If a request may cost more than is left, it
            is refused.
        metrics: whether it may read ``/metrics``.
    """

    hash: KeyHash
    models: tuple[str, ...] | None = None
    concurrent_requests: int | None = attrs.field(default=None, validator=_COUNT)
    requests_per_minute: int | None = attrs.field(default=None, validator=_COUNT)
    tokens_per_minute: int | None = attrs.field(default=None, validator=_COUNT)
    budget_per_day: float | None = attrs.field(default=None, validator=_POSITIVE)
    metrics: bool = False

    def may_ask(self, model: str) -> bool:
        """Whether it may use *model*, a name of the file."""
        return self.models is None or any(
            model.startswith(one[:-1]) if one.endswith("*") else model == one for one in self.models
        )

    @property
    def is_limited(self) -> bool:
        """Whether it has a limit that is counted over time."""
        return any((self.requests_per_minute, self.tokens_per_minute, self.budget_per_day))


@attrs.frozen(kw_only=True)
class TLS:
    """The files for HTTPS, in PEM.

    Attributes:
        certificate: the certificate, followed by those of its issuers.
        key: its private key.
    """

    certificate: Path
    key: Path


def _check_port(_: Any, attribute: attrs.Attribute[int], value: int) -> None:
    if not 0 <= value <= 65535:
        raise ConfigurationError("expected a port, from 0 to 65535", key=attribute.name)


@attrs.frozen(kw_only=True)
class Listen:
    """The address of the gateway.

    Attributes:
        host: the address. Other machines reach ``0.0.0.0`` or ``::``.
        port: the port, or 0 for any free one.
        workers: the number of processes. Several need ``redis`` if keys have limits, and store no responses without it.
        trusted_proxies: addresses whose ``X-Forwarded-For`` and ``X-Forwarded-Proto`` count, or ``*`` for all.
        origins: web pages that may call from a browser, such as ``https://chat.example.com``. Others are refused.
        open: serve everybody. Without ``keys`` the gateway refuses addresses that other machines reach, unless this is true.
    """

    host: str = "127.0.0.1"
    port: int = attrs.field(default=8080, validator=_check_port)
    workers: int = attrs.field(default=1, validator=_COUNT)
    trusted_proxies: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    open: bool = False

    @property
    def is_local(self) -> bool:
        """Whether only this machine reaches the address."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


@attrs.frozen(kw_only=True)
class Limits:
    """Limits of input in bytes and of clients in seconds.

    Attributes:
        body_bytes: the longest body of a request.
        answer_bytes: the longest answer of a server. Reading it takes about four times as much memory.
        head_seconds: until the head of a request is complete.
        body_seconds: until its body is complete.
        send_seconds: until a client accepts the next piece of an answer.
        silence_seconds: of a stream, until its client gets a sign that it is still open: first the head of the answer.
        concurrent_requests: the most requests that a process answers at once. More get a 503 with ``retry-after``.
        shutdown_seconds: until open answers are cut after the shutdown begins.
    """

    body_bytes: int = attrs.field(default=32 * MIB, validator=_COUNT)
    answer_bytes: int = attrs.field(default=64 * MIB, validator=_COUNT)
    head_seconds: float = attrs.field(default=10.0, validator=_POSITIVE)
    body_seconds: float = attrs.field(default=60.0, validator=_POSITIVE)
    send_seconds: float = attrs.field(default=120.0, validator=_POSITIVE)
    silence_seconds: float = attrs.field(default=10.0, validator=_POSITIVE)
    concurrent_requests: int = attrs.field(default=4096, validator=_COUNT)
    shutdown_seconds: float = attrs.field(default=30.0, validator=_POSITIVE)


@attrs.frozen(kw_only=True)
class Log:
    """The logs.

    Attributes:
        exchanges: a file of JSON lines, one for each answer with its content, for ``crosswalk batch`` and
            ``crosswalk normalize``. None by default.
        exchange_requests: whether these lines also hold the client's request.
        requests: whether standard error gets a line for each request without content, and for each wrong key with the
            address of its client.
    """

    exchanges: Path | None = None
    exchange_requests: bool = True
    requests: bool = True


@attrs.frozen(kw_only=True)
class Store:
    """Stored answers of the Responses API for ``previous_response_id``, visible only to the key that made them.

    Attributes:
        entries: the most answers. The oldest goes first, and 0 stores none.
        bytes: the most memory. Redis has its own limit.
        seconds: the lifetime of an answer.
    """

    entries: int = attrs.field(default=1000, validator=_above(-1, whole=True))
    bytes: int = attrs.field(default=64 * MIB, validator=_COUNT)
    seconds: float = attrs.field(default=86400.0, validator=_POSITIVE)


@attrs.frozen(kw_only=True)
class Redis:
    """The store that processes and machines share for counts and responses.

    Attributes:
        url: ``redis://…``, ``rediss://…`` or ``unix://…``, with an optional password.
        prefix: the prefix of all keys in it.
    """

    url: Secret
    prefix: str = "crosswalk"


@attrs.frozen(kw_only=True)
class Config:
    """The whole file.

    Attributes:
        models: the models by name. A name with ``*`` at its end matches all names that begin so. The longest match counts.
        keys: the clients' keys. Without keys, the gateway serves everybody who reaches it.
        listen: the address, or ``host:port`` in place of the section.
        tls: the files for HTTPS. Without them, the gateway speaks HTTP.
        limits: limits for clients and for the answers of servers.
        on_unsupported: ``refuse`` an option that a server cannot express, or ``drop`` it and say so.
        timeouts: limits for servers.
        retry: the retry policy.
        responses: the store for ``previous_response_id``.
        log: the logs.
        metrics: whether ``/metrics`` serves Prometheus (``crosswalk-llm[prometheus]``).
        tracing: whether OpenTelemetry gets every call (``crosswalk-llm[otel]``).
        redis: the store that processes share. Without it, each process has its own.
    """

    models: Mapping[str, Model] = attrs.field()
    keys: Mapping[str, Key] = attrs.field(factory=dict)
    listen: Listen = attrs.field(factory=Listen)
    tls: TLS | None = None
    limits: Limits = attrs.field(factory=Limits)
    on_unsupported: Literal["refuse", "drop"] = "refuse"
    timeouts: Patience = attrs.field(factory=Patience)
    retry: Repetition = attrs.field(factory=Repetition)
    responses: Store = attrs.field(factory=Store)
    log: Log = attrs.field(factory=Log)
    metrics: bool = False
    tracing: bool = False
    redis: Redis | None = None

    @models.validator
    def _check_models(self, _: Any, models: Mapping[str, Model]) -> None:
        if not models:
            raise ConfigurationError("expected at least one model", key="models")
        names = set(models)
        for name, model in models.items():
            for one in (name, *model.aliases):
                if "*" in one[:-1]:
                    raise ConfigurationError("a * stands only at the end of a name", key=f"models.{name}")
            twice = names.intersection(model.aliases)
            if twice:
                raise ConfigurationError(f"{min(twice)!r:.80} names two models", key=f"models.{name}.aliases")
            names.update(model.aliases)

    def __attrs_post_init__(self) -> None:
        policies = {
            "retry": self.retry,
            **{f"models.{name}.retry": one.retry for name, one in self.models.items()},
        }
        for key, policy in policies.items():
            if policy is not None and policy.after_first_token:
                raise ConfigurationError(
                    "after_first_token: no client can be told that what it got is void", key=key
                )
        known: dict[KeyHash, str] = {}
        for name, caller in self.keys.items():
            if (other := known.setdefault(caller.hash, name)) != name:
                raise ConfigurationError(f"the same hash as that of {other!r:.80}", key=f"keys.{name}.hash")
            unknown = {one for one in caller.models or () if not one.endswith("*")}.difference(self.models)
            if unknown:
                text = f"no model of the file is called {min(unknown)!r:.80}; an alias is no name here"
                raise ConfigurationError(text, key=f"keys.{name}.models")
        if not (self.keys or self.listen.is_local or self.listen.open):
            raise ConfigurationError(
                f"without keys, everybody who reaches {self.listen.host} could use it: give keys, or say open: true",
                key="listen",
            )
        if self.listen.workers > 1 and self.redis is None and any(k.is_limited for k in self.keys.values()):
            raise ConfigurationError(
                "several workers, each of which would count by itself what keys may: give redis", key="keys"
            )
