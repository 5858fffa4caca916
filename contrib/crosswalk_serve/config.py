"""The gateway's configuration file: its types, and how YAML is read into them. Errors name the line and the key."""

from __future__ import annotations

import difflib
import hmac
import ipaddress
import math
import os
import re
import typing
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Final, Literal

import attrs
import yaml

from crosswalk.convert import WireForm
from crosswalk.errors import ConfigurationError, CrosswalkError
from crosswalk.service import Endpoint, RetryPolicy, Secret, Timeouts, max_tokens_of

# ---------------------------------------------------------------------------------- config
# The types of the gateway's configuration file. :func:`crosswalk_serve.config.load_config` reads it.
#
# Every class here is a section of the file. ``docs/serve-configuration.md`` is generated from their docstrings.


MIB = 1024 * 1024


def _above(least: float, *, whole: bool = False) -> Any:
    """A validator: ``None``, or a number above *least*."""

    def check(_: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
        if value is not None and not (least < value < math.inf):
            number_kind = "whole number" if whole else "number"
            raise ConfigurationError(f"expected a {number_kind} above {least:g}", key=attribute.name)

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
        model_class: the model or the class of models whose rules hold, for a deployment with a name of its own. By default,
            the model's name decides.
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
    model_class: str | None = None
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
        target = attrs.evolve(self, provider=form.provider, api_key=key, headers=headers, formats=())
        try:
            target.max_tokens("")
        except ConfigurationError:  # the rows of that format have no such class
            return attrs.evolve(target, model_class=None)
        return target

    def max_tokens(self, model: str) -> int | None:
        """Return the most tokens that *model* writes in an answer, or ``None`` if that is unknown.

        Raises:
            ConfigurationError: there is no such model class.
        """
        return max_tokens_of(model, self.provider, self.model_class)

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
            model_class=self.model_class,
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
        match = re.fullmatch(r"sha256:((?:[0-9a-f]{2}){8,32}):([0-9a-f]{64})", text)
        if match is None:
            raise ConfigurationError("expected a hash, as `crosswalk serve --new-key` prints it")
        return cls(bytes.fromhex(match[1]), bytes.fromhex(match[2]))

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
        batches: whether it may send batches and read all of the server's. A batch names its models itself, and the gateway
            counts neither its tokens nor its cost.
    """

    hash: KeyHash
    models: tuple[str, ...] | None = None
    concurrent_requests: int | None = attrs.field(default=None, validator=_COUNT)
    requests_per_minute: int | None = attrs.field(default=None, validator=_COUNT)
    tokens_per_minute: int | None = attrs.field(default=None, validator=_COUNT)
    budget_per_day: float | None = attrs.field(default=None, validator=_POSITIVE)
    metrics: bool = False
    batches: bool = False

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
class GatewayLimits:
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
        reasoning_events: the words for plain reasoning in streams of Responses: those of ``openai``
            (``response.reasoning_text.delta``), or of ``open-responses`` (``response.reasoning.delta``). A client with the
            header ``OpenResponses-Version`` gets the latter anyway.
        log: the logs.
        metrics: whether ``/metrics`` serves Prometheus (``crosswalk-llm[prometheus]``).
        tracing: whether OpenTelemetry gets every call (``crosswalk-llm[otel]``).
        redis: the store that processes share. Without it, each process has its own.
    """

    models: Mapping[str, Model] = attrs.field()
    keys: Mapping[str, Key] = attrs.field(factory=dict)
    listen: Listen = attrs.field(factory=Listen)
    tls: TLS | None = None
    limits: GatewayLimits = attrs.field(factory=GatewayLimits)
    on_unsupported: Literal["refuse", "drop"] = "refuse"
    timeouts: Patience = attrs.field(factory=Patience)
    retry: Repetition = attrs.field(factory=Repetition)
    responses: Store = attrs.field(factory=Store)
    reasoning_events: Literal["openai", "open-responses"] = "openai"
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
                    raise ConfigurationError("a * is allowed only at the end of a name", key=f"models.{name}")
            repeated_names = names.intersection(model.aliases)
            if repeated_names:
                raise ConfigurationError(
                    f"{min(repeated_names)!r:.80} names two models", key=f"models.{name}.aliases"
                )
            names.update(model.aliases)

    def __attrs_post_init__(self) -> None:
        policies = {
            "retry": self.retry,
            **{f"models.{name}.retry": one.retry for name, one in self.models.items()},
        }
        for key, policy in policies.items():
            if policy is not None and policy.after_first_token:
                raise ConfigurationError(
                    "after_first_token: the gateway cannot take back what a client has received", key=key
                )
        name_by_hash: dict[KeyHash, str] = {}
        for name, client_key in self.keys.items():
            if (other_name := name_by_hash.setdefault(client_key.hash, name)) != name:
                raise ConfigurationError(
                    f"the same hash as that of {other_name!r:.80}", key=f"keys.{name}.hash"
                )
            unknown_models = {one for one in client_key.models or () if not one.endswith("*")}.difference(
                self.models
            )
            if unknown_models:
                text = f"no model of the file is called {min(unknown_models)!r:.80}; an alias does not count"
                raise ConfigurationError(text, key=f"keys.{name}.models")
        if not (self.keys or self.listen.is_local or self.listen.open):
            raise ConfigurationError(
                f"without keys, everybody who reaches {self.listen.host} could use it: add keys, or set open: true",
                key="listen",
            )
        if self.listen.workers > 1 and self.redis is None and any(k.is_limited for k in self.keys.values()):
            raise ConfigurationError(
                "several workers, each of which would count by itself what keys may: give redis", key="keys"
            )


# --------------------------------------------------------------------------------- reading
# Reads the gateway's file: YAML into the types of :mod:`crosswalk_serve.config`. Errors name the line and the key.


_VARIABLE: Final = re.compile(r"\$\{(\w+)\}")
_PLACEHOLDER: Final = re.compile("\ue000(\\w+)\ue001")
"""A variable without characters that end a plain text of YAML within braces."""
_TAG_PREFIX: Final = "tag:yaml.org,2002:"
_DEEPEST: Final = 64


def load_config(path: Path | str, environ: Mapping[str, str] | None = None) -> Config:
    """Read the configuration from the file *path*.

    Args:
        path: the file, YAML in UTF-8.
        environ: the values for ``${NAME}`` in it, or ``None`` for the process's environment.

    Raises:
        ConfigurationError: the file is wrong or cannot be read. The error names file, line and key, and quotes no value.
    """
    try:
        yaml_bytes = Path(path).read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror}", source=str(path)) from None
    return read_config(yaml_bytes, source=str(path), environ=environ)


def read_config(
    text: bytes | str, *, source: str = "<config>", environ: Mapping[str, str] | None = None
) -> Config:
    """Parse the configuration in *text*. Errors call it *source*. Otherwise like :func:`load_config`."""
    reader = _Reader(source, os.environ if environ is None else environ)
    node = _composed(text, source)
    if not isinstance(node, yaml.MappingNode):
        raise ConfigurationError(f"{source}: expected a mapping with `models`", source=source)
    config: Config = reader.read(Config, node, ())
    return config


def located(error: ConfigurationError, path: Path | str) -> ConfigurationError:
    """Return *error*, which names a key of the file *path*, with the file and the line of that key.

    An error that names its file is returned as it is.
    """
    if error.source is not None or not error.key:
        return error
    root = _composed(Path(path).read_bytes(), str(path))
    node = _deepest(root, error.key)
    where = str(path) if node is root or node is None else f"{path}, line {node.start_mark.line + 1}"
    return ConfigurationError(f"{where}: {error}", key=error.key, source=str(path))


def _deepest(node: yaml.Node | None, key: str) -> yaml.Node | None:
    """Return the node of the last part of the path *key* that is below *node*, or *node* itself."""
    deepest, remainder = node, f"{key}."
    while isinstance(node, yaml.MappingNode):
        matches = [(name, child) for name, child in node.value if remainder.startswith(f"{name.value}.")]
        if not matches:
            break
        deepest, node = max(matches, key=lambda one: len(one[0].value))
        remainder = remainder.removeprefix(f"{deepest.value}.")
    return deepest


def _composed(text: bytes | str, source: str) -> yaml.Node | None:
    """Parse *text* as YAML.

    Raises:
        ConfigurationError: it is not YAML.
    """
    try:
        yaml_text = text.decode("utf-8-sig") if isinstance(text, bytes) else text
        return yaml.compose(_VARIABLE.sub("\ue000\\1\ue001", yaml_text), yaml.SafeLoader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark is not None else ""
        raise ConfigurationError(f"{source}{where}: not YAML", source=source) from None


Path_ = tuple[str, ...]


@attrs.frozen
class _Reader:
    """Reads the nodes of one file.

    Attributes:
        source: the name of the file in errors.
        environ: the values for ``${NAME}``.
    """

    source: str
    environ: Mapping[str, str]

    def wrong(self, node: yaml.Node, path: Path_, problem: str) -> ConfigurationError:
        """Return the error *problem* about *node*, which is at *path*."""
        key = ".".join(path)
        text = f"{self.source}, line {node.start_mark.line + 1}: {key + ': ' if key else ''}{problem}"
        return ConfigurationError(text, key=key, source=self.source)

    def read(self, kind: Any, node: yaml.Node, path: Path_) -> Any:
        """Return *node* as a value of the type *kind*."""
        origin, arguments = typing.get_origin(kind), typing.get_args(kind)
        if origin in (UnionType, typing.Union):
            (kind,) = (one for one in arguments if one is not NoneType)
            return self.read(kind, node, path)
        if origin is Literal:
            word = self._scalar(node)
            if word not in arguments:
                raise self.wrong(node, path, f"expected {' or '.join(map(str, arguments))}")
            return word
        if origin is tuple or origin is frozenset:
            is_alone = isinstance(node, yaml.MappingNode) and attrs.has(arguments[0])
            items = [node] if is_alone else self._items(node, path)
            return origin(self.read(arguments[0], item, (*path, str(n))) for n, item in enumerate(items))
        if kind is Any or (origin is not None and arguments[-1] is Any):
            value = self._plain(node, path, 0)
            if kind is not Any and not isinstance(value, dict):
                raise self.wrong(node, path, "expected a mapping")
            return value
        if origin is not None:
            return {
                key: self.read(arguments[1], child, (*path, key)) for key, child in self._entries(node, path)
            }
        if attrs.has(kind) and kind is not KeyHash:
            return self._section(kind, node, path)
        return self._value(kind, node, path)

    # Sections.

    def _section(self, kind: Any, node: yaml.Node, path: Path_) -> Any:
        entries = dict(self._entries(self._in_full(kind, node, path), path))
        fields = {field.name: field for field in attrs.fields(kind) if field.init}
        hints = typing.get_type_hints(kind)
        for name in entries:
            if name not in fields:
                known_keys = {**fields, **attrs.fields_dict(Target)} if kind is Model else fields
                raise self.wrong(entries[name], (*path, name), f"unknown key{_meant(name, known_keys)}")
        missing_keys = [
            name for name, f in fields.items() if f.default is attrs.NOTHING and name not in entries
        ]
        if missing_keys:
            raise self.wrong(node, path, f"expected the key {missing_keys[0]!r}")
        values = {
            name: self.read(hints[name], child, (*path, name))
            for name, child in entries.items()
            if not self._is_null(child) or fields[name].default is attrs.NOTHING
        }
        try:
            return kind(**values)
        except CrosswalkError as error:
            key = getattr(error, "key", None) or ""
            raise self.wrong(
                _deepest(node, key) or node, (*path, *filter(None, key.split("."))), str(error)
            ) from None

    def _in_full(self, kind: Any, node: yaml.Node, path: Path_) -> yaml.Node:
        """Return *node* without the short forms that *kind* may have."""
        if kind is Listen and isinstance(node, yaml.ScalarNode):
            host, colon, port = str(node.value).rpartition(":")
            if not colon or not port.isdecimal():
                raise self.wrong(node, path, "expected host:port, or a mapping")
            return _mapping(node, {"host": (host.strip("[]"), "str"), "port": (port, "int")})
        if kind is Model and isinstance(node, yaml.SequenceNode):
            return _mapping(node, {"endpoints": node})
        if kind is Model and isinstance(node, yaml.MappingNode):
            model_fields = attrs.fields_dict(Model)
            target_entries = [(key, child) for key, child in node.value if key.value not in model_fields]
            if "endpoints" not in {key.value for key, _ in node.value}:
                target_fields = attrs.fields_dict(Target)
                for key, child in target_entries:
                    if key.value not in target_fields:
                        text = f"unknown key{_meant(str(key.value), {**model_fields, **target_fields})}"
                        raise self.wrong(child, (*path, str(key.value)), text)
                endpoint_node = yaml.MappingNode(node.tag, target_entries, node.start_mark, node.end_mark)
                list_node = yaml.SequenceNode(
                    f"{_TAG_PREFIX}seq", [endpoint_node], node.start_mark, node.end_mark
                )
                model_node = _mapping(node, {"endpoints": list_node})
                model_node.value += [(key, child) for key, child in node.value if key.value in model_fields]
                return model_node
        return node

    def _entries(self, node: yaml.Node, path: Path_) -> Iterable[tuple[str, yaml.Node]]:
        if self._is_null(node):
            return
        if not isinstance(node, yaml.MappingNode):
            raise self.wrong(node, path, "expected a mapping")
        seen = set()
        for key, child in node.value:
            name = str(key.value)
            if name in seen or not isinstance(key, yaml.ScalarNode):
                problem = "is given twice" if name in seen else "expected a plain key"
                raise self.wrong(key, (*path, name) if name in seen else path, problem)
            seen.add(name)
            yield name, child

    def _items(self, node: yaml.Node, path: Path_) -> list[yaml.Node]:
        if isinstance(node, yaml.ScalarNode):
            return [] if self._is_null(node) else [node]  # a single value
        if not isinstance(node, yaml.SequenceNode):
            raise self.wrong(node, path, "expected a list")
        return list(node.value)

    # Values.

    def _value(self, kind: Any, node: yaml.Node, path: Path_) -> Any:
        if kind is Secret and isinstance(node, yaml.MappingNode):
            return self._secret_of_file(node, path)
        value = self._scalar(node)
        if kind is float and type(value) is int:
            value = float(value)
        if kind in (bool, int, float):
            if type(value) is not kind:
                expectation = {bool: "true or false", int: "a whole number", float: "a number"}[kind]
                raise self.wrong(node, path, f"expected {expectation}")
            return value
        if type(value) is not str:
            hint = "; put it in quotes" if isinstance(node, yaml.ScalarNode) and value is not None else ""
            raise self.wrong(node, path, f"expected a text{hint}")
        text = self._filled(value, node, path)
        try:
            return kind.parse(text) if kind is KeyHash else kind(text)
        except (CrosswalkError, ValueError) as error:
            raise self.wrong(node, path, str(error)) from None

    def _secret_of_file(self, node: yaml.MappingNode, path: Path_) -> Secret:
        entries = dict(self._entries(node, path))
        if entries.keys() != {"file"}:
            raise self.wrong(node, path, "expected a text, or {file: PATH}")
        file = self._value(Path, entries["file"], (*path, "file"))
        try:
            return Secret(file.read_text("utf-8").strip())
        except OSError as error:
            raise self.wrong(node, (*path, "file"), str(error.strerror)) from None
        except (CrosswalkError, ValueError):
            raise self.wrong(node, (*path, "file"), "the file holds no credential") from None

    def _filled(self, text: str, node: yaml.Node, path: Path_) -> str:
        """Return *text* with the values of its ``${NAME}``."""

        def value(found: re.Match[str]) -> str:
            if found[1] not in self.environ:
                raise self.wrong(node, path, f"the environment has no {found[1]}")
            return self.environ[found[1]]

        return _PLACEHOLDER.sub(value, text)

    def _plain(self, node: yaml.Node, path: Path_, depth: int) -> Any:
        """Return *node* as plain JSON."""
        if depth > _DEEPEST:
            raise self.wrong(node, path, "nested too deeply")
        if isinstance(node, yaml.MappingNode):
            return {
                key: self._plain(child, (*path, key), depth + 1) for key, child in self._entries(node, path)
            }
        if isinstance(node, yaml.SequenceNode):
            return [self._plain(child, (*path, str(n)), depth + 1) for n, child in enumerate(node.value)]
        value = self._scalar(node)
        if isinstance(value, str):
            return self._filled(value, node, path)
        if value is not None and type(value) not in (bool, int, float):
            raise self.wrong(node, path, "expected what JSON has; put it in quotes")
        return value

    def _scalar(self, node: yaml.Node) -> Any:
        """Return the value of a scalar, or the node itself if it is not a scalar."""
        if not isinstance(node, yaml.ScalarNode):
            return node
        try:
            return yaml.SafeLoader("").construct_object(node)
        except (yaml.YAMLError, ValueError):
            return node

    @staticmethod
    def _is_null(node: yaml.Node) -> bool:
        return isinstance(node, yaml.ScalarNode) and node.tag == f"{_TAG_PREFIX}null"


def _mapping(node: yaml.Node, entries: Mapping[str, Any]) -> yaml.MappingNode:
    """Return a mapping in the place of *node*. A pair consists of a scalar and its type."""
    start, end = node.start_mark, node.end_mark

    def scalar(text: str, tag: str) -> yaml.ScalarNode:
        return yaml.ScalarNode(f"{_TAG_PREFIX}{tag}", text, start, end)

    pairs = [
        (scalar(key, "str"), scalar(*child) if isinstance(child, tuple) else child)
        for key, child in entries.items()
    ]
    return yaml.MappingNode(f"{_TAG_PREFIX}map", pairs, start, end)


def _meant(word: str, known: Iterable[str]) -> str:
    """Return the hint for an unknown *word*: the nearest known one, or else all of them."""
    close_words = difflib.get_close_matches(word.lower(), list(known), n=1)
    return f", did you mean {close_words[0]!r}?" if close_words else f"; known: {', '.join(known)}"
