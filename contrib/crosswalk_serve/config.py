"""The gateway's configuration file: its types, and how YAML is read into them. Errors name the line and the key."""

from __future__ import annotations

import difflib
import functools
import hmac
import ipaddress
import math
import os
import re
import typing
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal

import attrs
import yaml
from cattrs.cols import list_structure_factory
from cattrs.errors import AttributeValidationNote, BaseValidationError
from cattrs.gen import make_dict_structure_fn
from yaml.composer import ComposerError

from crosswalk.codec import CanonicalConverter, converter
from crosswalk.convert import WireForm
from crosswalk.errors import ConfigurationError, CrosswalkError, ErrorKind
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
        budget_per_month: likewise in a month of the calendar, in UTC.
        expires: the time from which the key is refused, with its zone, such as ``2027-01-31T00:00Z``. Never by default.
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
    budget_per_month: float | None = attrs.field(default=None, validator=_POSITIVE)
    expires: datetime | None = None
    metrics: bool = False
    batches: bool = False

    def may_ask(self, model: str) -> bool:
        """Whether it may use *model*, a name of the file."""
        return self.models is None or any(
            model.startswith(one[:-1]) if one.endswith("*") else model == one for one in self.models
        )

    @property
    def budgets(self) -> dict[str, float]:
        """The US dollars for each period that has a budget: ``day`` or ``month``."""
        dollars = {"day": self.budget_per_day, "month": self.budget_per_month}
        return {period: amount for period, amount in dollars.items() if amount is not None}

    @property
    def is_limited(self) -> bool:
        """Whether it has a limit that is counted over time."""
        return any((self.requests_per_minute, self.tokens_per_minute, self.budgets))


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


def _check_addresses(_: Any, attribute: attrs.Attribute[Any], addresses: tuple[str, ...]) -> None:
    for number, address in enumerate(addresses):
        try:
            ipaddress.ip_network("::/0" if address == "*" else address)
        except ValueError:
            raise ConfigurationError(
                "expected an IP address, a network such as 10.0.0.0/8, or *", key=f"{attribute.name}.{number}"
            ) from None


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
    trusted_proxies: tuple[str, ...] = attrs.field(default=(), validator=_check_addresses)
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
        format: ``text``, or ``json`` for a JSON object in each line, with the names in the guide.
    """

    exchanges: Path | None = None
    exchange_requests: bool = True
    requests: bool = True
    format: Literal["text", "json"] = "text"


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
        costs: whether a whole answer has the header ``x-crosswalk-cost-usd`` if its cost is known, and its line in the log
            says it, too. Needs the price of each model (``crosswalk-llm[prices]``).
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
    costs: bool = False
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
# Reads the gateway's file: cattrs makes the types above of the parsed YAML. Errors name the line and the key.


_VARIABLE: Final = re.compile(r"\$\{(\w+)\}")
_PLACEHOLDER: Final = re.compile("\ue000(\\w+)\ue001")
"""A variable without characters that end a plain text of YAML within braces."""
_OPEN_VARIABLE: Final = re.compile(r"\$\{\w*$")
"""A variable whose brace was forgotten."""
_DEEPEST: Final = 64
_MOST_NODES: Final = 100_000


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
    root = _composed(text, source)
    if not isinstance(root, yaml.MappingNode):
        raise ConfigurationError(f"{source}: expected a mapping with `models`", source=source)
    try:
        left_nodes = iter(range(_MOST_NODES))
        value = _plain(root, (), os.environ if environ is None else environ, left_nodes)
        return _converter().structure(value, Config)
    except Exception as error:
        problem = _first_problem(error)
    raise _placed(problem, root, source)  # out here it has no context, which would quote values


def located(error: ConfigurationError, path: Path | str) -> ConfigurationError:
    """Return *error*, which names a key of the file *path*, with the file and the line of that key.

    An error that names its file is returned as it is.
    """
    if error.source is not None or not error.key:
        return error
    root = _composed(Path(path).read_bytes(), str(path))
    return _placed(error, root, str(path), repeats_key=False)


def _placed(
    error: ConfigurationError, root: yaml.Node | None, source: str, *, repeats_key: bool = True
) -> ConfigurationError:
    """Return *error* with the name of the file and the line of its key, which is below *root*."""
    key = error.key or ""
    node = _deepest(root, key)
    where = source if node is None or (node is root and key) else f"{source}, line {node.start_mark.line + 1}"
    named_key = f"{key}: " if key and repeats_key else ""
    return ConfigurationError(f"{where}: {named_key}{error}", key=key, source=source)


def _deepest(node: yaml.Node | None, key: str) -> yaml.Node | None:
    """Return the node of the last name in the path *key* that is below *node*, or *node* itself.

    A part without a node belongs to the full form of a section, where the file has a short one.
    """
    remainder, place = f"{key}.", node
    while remainder:
        children: list[tuple[str, yaml.Node, yaml.Node]] = []
        if isinstance(node, yaml.MappingNode):
            children = [(str(name.value), name, child) for name, child in node.value]
        elif isinstance(node, yaml.SequenceNode):
            children = [(str(number), child, child) for number, child in enumerate(node.value)]
        matches = [one for one in reversed(children) if remainder.startswith(f"{one[0]}.")]
        if matches:
            name, place, node = max(matches, key=lambda one: len(one[0]))
            remainder = remainder.removeprefix(f"{name}.")
        else:
            remainder = remainder.partition(".")[2]
    return place


class _Loader(yaml.SafeLoader):
    """Reads what JSON has. A date without quotes is a text."""

    yaml_implicit_resolvers = {
        first: [one for one in resolvers if one[0] != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def _composed(text: bytes | str, source: str) -> yaml.Node | None:
    """Parse *text* as YAML.

    Raises:
        ConfigurationError: it is not YAML.
    """
    try:
        yaml_text = text.decode("utf-8-sig") if isinstance(text, bytes) else text
        return yaml.compose(_VARIABLE.sub("\ue000\\1\ue001", yaml_text), _Loader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = None if mark is None else mark.line + 1
        if isinstance(error, UnicodeDecodeError):
            line = error.object.count(b"\n", 0, error.start) + 1
        where = "" if line is None else f", line {line}"
        is_second = isinstance(error, ComposerError) and "single document" in str(error)
        problem = "expected one document, not several" if is_second else "not YAML"
        raise ConfigurationError(f"{source}{where}: {problem}", source=source) from None


def _plain(
    node: yaml.Node, path: tuple[str, ...], environ: Mapping[str, str], left_nodes: Iterator[int]
) -> Any:
    """Return *node*, which is at *path*, as decoded JSON. Texts have the values of *environ* for their ``${NAME}``.

    Raises:
        ConfigurationError: it is not JSON, a variable is missing, or aliases make more of it than there are *left_nodes*.
    """
    key = ".".join(path)
    if len(path) > _DEEPEST:
        raise ConfigurationError("nested too deeply", key=key)
    if next(left_nodes, None) is None:
        raise ConfigurationError(f"more than {_MOST_NODES} values, by its aliases", key=path[0])
    if isinstance(node, yaml.SequenceNode):
        return [
            _plain(child, (*path, str(number)), environ, left_nodes)
            for number, child in enumerate(node.value)
        ]
    if isinstance(node, yaml.MappingNode):
        values: dict[str, Any] = {}
        for name_node, child in node.value:
            is_null = name_node.tag == "tag:yaml.org,2002:null"
            if not isinstance(name_node, yaml.ScalarNode) or is_null or not name_node.value:
                raise ConfigurationError("expected a plain key", key=key)
            name = str(name_node.value)
            if name in values:
                raise ConfigurationError("is given twice", key=".".join((*path, name)))
            values[name] = _plain(child, (*path, name), environ, left_nodes)
        return values
    try:
        value = _Loader("").construct_object(node)
    except (yaml.YAMLError, ValueError):
        value = node
    is_sexagesimal = type(value) in (int, float) and ":" in str(node.value)
    if is_sexagesimal or (value is not None and type(value) not in (str, bool, int, float)):
        raise ConfigurationError("expected what JSON has; put it in quotes", key=key)
    missing_names = [one for one in _PLACEHOLDER.findall(str(value)) if one not in environ]
    if isinstance(value, str) and _OPEN_VARIABLE.search(value):
        raise ConfigurationError("expected ${NAME}, with its brace", key=key)
    if missing_names:
        raise ConfigurationError(f"the environment has no {missing_names[0]}", key=key)
    return _PLACEHOLDER.sub(lambda found: environ[found[1]], value) if isinstance(value, str) else value


def _first_problem(error: Exception) -> ConfigurationError:
    """Return what was found first of all that cattrs found, with the path to it as its key."""
    steps: list[str | None] = []
    while isinstance(error, BaseValidationError):
        error = error.exceptions[0]
        for note in getattr(error, "__notes__", ()):
            steps.append(note.name if isinstance(note, AttributeValidationNote) else str(note.index))
    problem = "the key is missing" if isinstance(error, KeyError) else str(error)
    return ConfigurationError(problem, key=".".join(filter(None, [*steps, getattr(error, "key", None)])))


@functools.cache
def _converter() -> CanonicalConverter:
    """The converter for the file: that of canonical JSON, which coerces nothing, and our short forms."""
    new_converter = converter()
    for kind in (str, Path, Secret, KeyHash):
        new_converter.register_structure_hook(kind, _text)
    new_converter.register_structure_hook(ErrorKind, _error_kind)
    new_converter.register_structure_hook_factory(_is_list, _items)
    new_converter.register_structure_hook_factory(_is_section, _section)
    return new_converter


def _is_list(kind: Any) -> bool:
    origin: object = typing.get_origin(kind)
    return origin is tuple or origin is frozenset


def _error_kind(value: Any, _: Any) -> ErrorKind:
    if value not in [*ErrorKind]:
        raise ConfigurationError(f"expected one of {', '.join(ErrorKind)}")
    return ErrorKind(value)


def _is_section(kind: Any) -> bool:
    return attrs.has(kind) and kind is not KeyHash


def _text(value: Any, kind: Any) -> Any:
    """Return the value of *kind* that is made of a text. That of a secret may be in a file."""
    if kind is Secret and isinstance(value, dict):
        return _secret_of_file(value)
    if type(value) is not str:
        raise ConfigurationError("expected a text in quotes")
    return KeyHash.parse(value) if kind is KeyHash else kind(value)


def _secret_of_file(value: dict[str, Any]) -> Secret:
    if value.keys() != {"file"}:
        raise ConfigurationError("expected a text, or {file: PATH}")
    try:
        return Secret(Path(str(value["file"])).read_text("utf-8").strip())
    except OSError as error:
        raise ConfigurationError(str(error.strerror), key="file") from None
    except (CrosswalkError, ValueError):
        raise ConfigurationError("the file holds no credential", key="file") from None


def _items(kind: Any, converter: Any) -> Callable[[Any, Any], Any]:
    """Read a list. A single value is a list of it."""
    read_items, make = list_structure_factory(kind, converter), typing.get_origin(kind)
    return lambda value, _: make(read_items(value if isinstance(value, list) else [value], kind))


def _section(kind: Any, converter: Any) -> Callable[[Any, Any], Any]:
    """Read a section. A key without a value is as if it were not there."""
    attrs.resolve_types(kind)
    read_keys, fields = make_dict_structure_fn(kind, converter), attrs.fields_dict(kind)

    def read(value: Any, _: Any) -> Any:
        entries = _in_full(kind, value)
        if not isinstance(entries, dict):
            raise ConfigurationError("expected a mapping")
        _check_names(entries, fields, _MODEL_KEYS if kind is Model else fields)
        return read_keys({name: entry for name, entry in entries.items() if entry is not None}, kind)

    return read


_MODEL_KEYS: Final = (*attrs.fields_dict(Model), *attrs.fields_dict(Target))


def _in_full(kind: Any, value: Any) -> Any:
    """Return *value* without the short forms that *kind* may have."""
    if kind is Listen and isinstance(value, str):
        host, colon, port = value.rpartition(":")
        if not colon or not port.isdecimal():
            raise ConfigurationError("expected host:port, or a mapping")
        return {"host": host.strip("[]"), "port": int(port)}
    if kind is Model and isinstance(value, list):
        return {"endpoints": value}
    if kind is Model and isinstance(value, dict) and "endpoints" not in value:
        _check_names(value, _MODEL_KEYS, _MODEL_KEYS)
        own_names = attrs.fields_dict(Model).keys()
        target = {name: value[name] for name in value if name not in own_names}
        return {"endpoints": [target], **{name: value[name] for name in value if name in own_names}}
    return {} if value is None else value


def _check_names(names: Iterable[str], allowed: Container[str], known: Iterable[str]) -> None:
    """Refuse a key that is not *allowed*, with the nearest *known* one, or else all of them."""
    for name in names:
        if name not in allowed:
            close_words = difflib.get_close_matches(name.lower(), list(known), n=1)
            hint = f", did you mean {close_words[0]!r}?" if close_words else f"; known: {', '.join(known)}"
            raise ConfigurationError(f"unknown key{hint}", key=name)
