"""What a gateway is told: the types of its one file. :func:`crosswalk_serve.reading.load_config` reads them.

Every class here is a section of the file, and its docstring the reference of it: ``docs/serve.md`` is written from them.
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

from crosswalk.errors import ConfigurationError
from crosswalk.service import Endpoint, RetryPolicy, Secret, Timeouts

__all__ = [
    "TLS",
    "Config",
    "Key",
    "KeyHash",
    "Limits",
    "Listen",
    "Log",
    "Model",
    "Patience",
    "Price",
    "Redis",
    "Store",
    "Target",
]

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
    """How long one attempt at a server, and a whole call, may take, in seconds."""

    total: float | None = attrs.field(default=600.0, validator=_POSITIVE)


@attrs.frozen(kw_only=True)
class Target:
    """A server that is asked for a model.

    Attributes:
        provider: whose dialect it speaks: a provider id, as ``crosswalk providers`` lists them.
        model: what it calls the model; without it, what the client wrote.
        base_url: where it is; without it, what the environment says, else the provider's default.
        api_key: the key to it; without it, what the environment says.
        headers: more headers for every request to it; their values are treated as secrets.
        takes_media: whether its model can be shown images, sounds and files.
        weight: how often it is asked first, beside the others of the list: of 3 and 1 the one gets three quarters. One
            without a weight, where others have one, is asked only when they have failed.
        options: what only its API knows, merged into the body of every request to it.
        counts_tokens: whether it has Anthropic's ``/v1/messages/count_tokens``; by default only ``anthropic`` has.
    """

    provider: str
    model: str | None = None
    base_url: str | None = None
    api_key: Secret | None = None
    headers: Mapping[str, Secret] = attrs.field(factory=dict)
    takes_media: bool = True
    weight: float | None = attrs.field(default=None, validator=_POSITIVE)
    options: Mapping[str, Any] = attrs.field(factory=dict)
    counts_tokens: bool | None = None

    def endpoint(self) -> Endpoint:
        """It as the service asks it.

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
    """What a model costs, for budgets; without it the price lists are asked (``crosswalk-llm[prices]``).

    Attributes:
        input_per_million: for a million tokens of the prompt, in US dollars.
        output_per_million: for a million tokens of the answer.
    """

    input_per_million: float = attrs.field(validator=_above(-1))
    output_per_million: float = attrs.field(validator=_above(-1))


@attrs.frozen(kw_only=True)
class Model:
    """What stands behind the name of a model. Its endpoints' list, or the one endpoint, may stand there alone.

    Attributes:
        endpoints: the servers, in the order in which they are asked: the next one when one has failed.
        aliases: other names for it.
        defaults: options for requests that do not say them, in Crosswalk's words: ``temperature``, ``max_tokens`` …
        timeouts: how long an attempt and a call may take; without it, those of the gateway.
        retry: what is tried again; without it, as the gateway does.
        on_unsupported: as that of the gateway, for this model.
        price: what it costs.
    """

    endpoints: tuple[Target, ...] = attrs.field()
    aliases: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = attrs.field(factory=dict)
    timeouts: Patience | None = None
    retry: RetryPolicy | None = None
    on_unsupported: Literal["refuse", "drop"] | None = None
    price: Price | None = None

    @endpoints.validator
    def _check_endpoints(self, _: Any, endpoints: tuple[Target, ...]) -> None:
        if not endpoints:
            raise ConfigurationError("a model needs an endpoint", key="endpoints")


@attrs.frozen
class KeyHash:
    """A key as it is kept: nobody can tell it from this.

    Keys are drawn at random and long, so a plain salted SHA-256 is as good as a slow hash, and no request waits for it.

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
        """What ``str`` of one was.

        Raises:
            ConfigurationError: it is none; *text*, which may be a key, is not quoted.
        """
        found = re.fullmatch(r"sha256:((?:[0-9a-f]{2}){8,32}):([0-9a-f]{64})", text)
        if found is None:
            raise ConfigurationError("expected a hash, as `crosswalk serve --new-key` prints it")
        return cls(bytes.fromhex(found[1]), bytes.fromhex(found[2]))

    def fits(self, key: str) -> bool:
        """Whether it is that of *key*; takes the same time wherever they differ."""
        return hmac.compare_digest(self.digest, KeyHash.of(key, self.salt).digest)

    def __str__(self) -> str:
        return f"sha256:{self.salt.hex()}:{self.digest.hex()}"


@attrs.frozen(kw_only=True)
class Key:
    """Who may ask, for what, and how much of it.

    Attributes:
        hash: that of the key: ``crosswalk serve --new-key`` prints both.
        models: the models that it may ask for, ``*`` at the end of a name for any; without it all, with ``[]`` none.
        requests_per_minute: how many requests a minute; without it, any number.
        tokens_per_minute: how many tokens a minute, of prompts and answers; a request is refused once they are used up.
        budget_per_day: how many US dollars a day, which begins at midnight UTC; likewise.
        metrics: whether it may read ``/metrics``.
    """

    hash: KeyHash
    models: tuple[str, ...] | None = None
    requests_per_minute: int | None = attrs.field(default=None, validator=_COUNT)
    tokens_per_minute: int | None = attrs.field(default=None, validator=_COUNT)
    budget_per_day: float | None = attrs.field(default=None, validator=_POSITIVE)
    metrics: bool = False

    def may_ask(self, model: str) -> bool:
        """Whether it may ask for *model*, the name in the file."""
        return self.models is None or any(
            model.startswith(one[:-1]) if one.endswith("*") else model == one for one in self.models
        )

    @property
    def is_limited(self) -> bool:
        """Whether something is counted for it."""
        return any((self.requests_per_minute, self.tokens_per_minute, self.budget_per_day))


@attrs.frozen(kw_only=True)
class TLS:
    """The files for HTTPS, in PEM.

    Attributes:
        certificate: the certificate, and those of its issuers behind it.
        key: its private key.
    """

    certificate: Path
    key: Path


def _check_port(_: Any, attribute: attrs.Attribute[int], value: int) -> None:
    if not 0 <= value <= 65535:
        raise ConfigurationError("expected a port, from 0 to 65535", key=attribute.name)


@attrs.frozen(kw_only=True)
class Listen:
    """Where the gateway listens.

    Attributes:
        host: the address; other machines reach ``0.0.0.0`` or ``::``.
        port: the port; 0 for one that is free.
        workers: how many processes; more than one want ``redis`` where keys have limits, and keep no responses without it.
        trusted_proxies: addresses whose ``X-Forwarded-For`` and ``X-Forwarded-Proto`` are believed; ``*`` for all.
        origins: web pages that may ask from a browser, such as ``https://chat.example.com``; others are refused.
        open: serve everybody who reaches it: without ``keys``, other addresses than this machine's own are refused
            unless this is true.
    """

    host: str = "127.0.0.1"
    port: int = attrs.field(default=8080, validator=_check_port)
    workers: int = attrs.field(default=1, validator=_COUNT)
    trusted_proxies: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    open: bool = False

    @property
    def is_local(self) -> bool:
        """Whether only this machine reaches it."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


@attrs.frozen(kw_only=True)
class Limits:
    """How much may come from outside, and how long a client may take; in bytes and seconds.

    Attributes:
        body_bytes: the longest body of a request.
        answer_bytes: the longest answer of a server, as it comes from there; one that never ends is cut here. To be read,
            it takes some four times as much memory.
        head_seconds: until the head of a request is there.
        body_seconds: until its body is there.
        send_seconds: until a client takes the next piece of an answer.
        concurrent_requests: how many requests each process answers at once; the next one is told to come again.
        shutdown_seconds: how long answers may go on once the gateway has been told to end.
    """

    body_bytes: int = attrs.field(default=32 * MIB, validator=_COUNT)
    answer_bytes: int = attrs.field(default=64 * MIB, validator=_COUNT)
    head_seconds: float = attrs.field(default=10.0, validator=_POSITIVE)
    body_seconds: float = attrs.field(default=60.0, validator=_POSITIVE)
    send_seconds: float = attrs.field(default=120.0, validator=_POSITIVE)
    concurrent_requests: int = attrs.field(default=4096, validator=_COUNT)
    shutdown_seconds: float = attrs.field(default=30.0, validator=_POSITIVE)


@attrs.frozen(kw_only=True)
class Log:
    """What is written down.

    Attributes:
        exchanges: a file that each answer is added to, a line of JSON each, which ``crosswalk batch`` and
            ``crosswalk normalize`` read; it holds what models said. Without it, none.
        requests: whether each request for an answer is a line on standard error, without content, and each wrong key one
            with the address that it came from.
    """

    exchanges: Path | None = None
    requests: bool = True


@attrs.frozen(kw_only=True)
class Store:
    """What is kept of answers of the Responses API, for ``previous_response_id``; each for the key that asked alone.

    Attributes:
        entries: how many; the oldest goes first. 0 keeps none.
        bytes: how much, in memory; with ``redis`` that has its own limit.
        seconds: how long.
    """

    entries: int = attrs.field(default=1000, validator=_above(-1, whole=True))
    bytes: int = attrs.field(default=64 * MIB, validator=_COUNT)
    seconds: float = attrs.field(default=86400.0, validator=_POSITIVE)


@attrs.frozen(kw_only=True)
class Redis:
    """Where processes and machines share what they count and keep.

    Attributes:
        url: ``redis://…``, ``rediss://…`` or ``unix://…``; it may hold a password.
        prefix: what all keys in it start with.
    """

    url: Secret
    prefix: str = "crosswalk"


@attrs.frozen(kw_only=True)
class Config:
    """The file as a whole.

    Attributes:
        models: what stands behind which name. A name that ends in ``*`` is for all that begin so; the longest one counts.
        keys: who may ask; without any, everybody who reaches it.
        listen: where it listens; ``host:port`` may stand there alone.
        tls: for HTTPS; without it, HTTP.
        limits: for clients, and for what servers send.
        on_unsupported: ``refuse`` what a server cannot express, naming it, or ``drop`` it and say so.
        timeouts: how long servers may take.
        retry: what is tried again.
        responses: what is kept for ``previous_response_id``.
        log: what is written down.
        metrics: whether there is ``/metrics`` for Prometheus (``crosswalk-llm[prometheus]``).
        tracing: whether OpenTelemetry is told of every call (``crosswalk-llm[otel]``).
        redis: where processes share what they count and keep; without it, each has its own.
    """

    models: Mapping[str, Model] = attrs.field()
    keys: Mapping[str, Key] = attrs.field(factory=dict)
    listen: Listen = attrs.field(factory=Listen)
    tls: TLS | None = None
    limits: Limits = attrs.field(factory=Limits)
    on_unsupported: Literal["refuse", "drop"] = "refuse"
    timeouts: Patience = attrs.field(factory=Patience)
    retry: RetryPolicy = attrs.field(factory=RetryPolicy)
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
                said = f"no model of the file is called {min(unknown)!r:.80}; an alias is no name here"
                raise ConfigurationError(said, key=f"keys.{name}.models")
        if not (self.keys or self.listen.is_local or self.listen.open):
            raise ConfigurationError(
                f"without keys, everybody who reaches {self.listen.host} could use it: give keys, or say open: true",
                key="listen",
            )
        if self.listen.workers > 1 and self.redis is None and any(k.is_limited for k in self.keys.values()):
            raise ConfigurationError(
                "several workers, each of which would count by itself what keys may: give redis", key="keys"
            )
