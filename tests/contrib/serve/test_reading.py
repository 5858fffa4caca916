"""The file: what it may say, and what is said where it is wrong."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from crosswalk.errors import ConfigurationError, ErrorKind
from crosswalk.service import Secret
from crosswalk_serve.config import Config, KeyHash, Listen, Target, load_config, read_config

HASH = str(KeyHash.of("cw-0123456789", b"saltsalt"))
ONE = "models: {a: {provider: ollama}}\n"


def read(text: str, **environ: str) -> Config:
    return read_config(text, source="g.yml", environ=environ)


def test_one_endpoint_may_stand_alone_with_what_belongs_to_its_model() -> None:
    config = read("models:\n  a: {provider: ollama, model: m, aliases: [b, c], defaults: {temperature: 0}}")
    model = config.models["a"]
    assert model.endpoints == (Target(provider="ollama", model="m"),)
    assert (model.aliases, model.defaults) == (("b", "c"), {"temperature": 0})


def test_a_list_is_a_list_of_endpoints() -> None:
    config = read("models:\n  a:\n  - {provider: vllm, weight: 3}\n  - provider: ollama\n")
    assert [(t.provider, t.weight) for t in config.models["a"].endpoints] == [("vllm", 3.0), ("ollama", None)]


def test_everything_can_be_said() -> None:
    config = read(
        f"""
models:
  a:
    endpoints:
    - provider: vllm
      base_url: http://${{HOST}}:8000
      api_key: ${{KEY}}
      headers: {{X-Org: "${{KEY}}"}}
      takes_media: false
      options: {{a: [1, null, true, 2.5, "${{HOST}}"], b: {{c: d}}}}
      counts_tokens: true
    timeouts: {{first_token: 3}}
    on_unsupported: drop
    price: {{input_per_million: 0, output_per_million: 2}}
keys:
  alice: {{hash: "{HASH}", models: a, requests_per_minute: 3, tokens_per_minute: 4, budget_per_day: 5, metrics: true, budget_per_month: 9, expires: 2027-01-31T01:00+01:00}}
listen: {{host: 0.0.0.0, port: 1, workers: 2, trusted_proxies: ["*"], origins: [https://x.example]}}
tls: {{certificate: a.pem, key: b.pem}}
limits: {{body_bytes: 1, head_seconds: 2, concurrent_requests: 3}}
timeouts: {{total: 9}}
retry: {{attempts: 2, kinds: [server, timeout]}}
responses: {{entries: 0}}
log: {{exchanges: x.jsonl, requests: false}}
metrics: true
tracing: true
redis: {{url: redis://:pw@h, prefix: p}}
on_unsupported: drop
""",
        HOST="gpu",
        KEY="sk-secret",
    )
    (target,) = config.models["a"].endpoints
    assert target.base_url == "http://gpu:8000"
    assert target.api_key == Secret("sk-secret")
    assert target.endpoint().headers == {"X-Org": Secret("sk-secret")}
    assert target.options == {"a": [1, None, True, 2.5, "gpu"], "b": {"c": "d"}}
    assert config.models["a"].timeouts.first_token == 3
    assert config.keys["alice"].models == ("a",)
    assert config.keys["alice"].budgets == {"day": 5, "month": 9}
    assert config.keys["alice"].expires == datetime(2027, 1, 31, tzinfo=UTC)
    assert config.retry.kinds == {ErrorKind.SERVER, ErrorKind.TIMEOUT}
    assert (config.tls.key, config.redis.url) == (Path("b.pem"), Secret("redis://:pw@h"))
    assert (config.log.exchanges, config.responses.entries) == (Path("x.jsonl"), 0)


def test_what_is_empty_is_as_if_it_were_not_there() -> None:
    config = read(ONE + "keys:\nlisten:\nlog: {exchanges: }\nretry: {}")
    assert (config.keys, config.listen, config.log.exchanges) == ({}, Listen(), None)


@pytest.mark.parametrize(
    ("said", "models", "may"),
    [
        ("", None, True),
        (", models: ", None, True),
        (", models: []", (), False),
        (", models: ['z*']", ("z*",), False),
    ],
)
def test_a_key_for_no_model_is_for_none(said: str, models: tuple[str, ...] | None, may: bool) -> None:
    key = read(ONE + f"keys: {{k: {{hash: '{HASH}'{said}}}}}").keys["k"]
    assert (key.models, key.may_ask("a")) == (models, may)


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [("127.0.0.1:9", "127.0.0.1", 9), ("'[::1]:9'", "::1", 9), ("localhost:9", "localhost", 9)],
)
def test_where_it_listens_may_be_said_in_one_word(text: str, host: str, port: int) -> None:
    listen = read(ONE + f"listen: {text}").listen
    assert (listen.host, listen.port, listen.is_local) == (host, port, True)


def test_a_date_without_quotes_is_a_text() -> None:
    (target,) = (
        read("models: {a: {provider: o, model: 2020-01-01, options: {day: 2020-01-01}}}")
        .models["a"]
        .endpoints
    )
    assert (target.model, target.options) == ("2020-01-01", {"day": "2020-01-01"})


def test_a_key_may_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("sk-secret\n")
    config = read(f"models: {{a: {{provider: ollama, api_key: {{file: {tmp_path}/key}}}}}}")
    assert config.models["a"].endpoints[0].api_key == Secret("sk-secret")


def test_no_secret_is_shown() -> None:
    config = read(
        f"models: {{a: {{provider: o, api_key: sk-secret, headers: {{a: sk-secret}}}}}}\nkeys: {{k: {{hash: '{HASH}'}}}}\nredis: {{url: sk-secret}}"
    )
    assert "sk-secret" not in repr(config)
    assert HASH[-20:] not in repr(config)


def test_the_file_itself(tmp_path: Path) -> None:
    (tmp_path / "g.yml").write_text(ONE)
    assert load_config(tmp_path / "g.yml") == read(ONE)
    with pytest.raises(ConfigurationError, match=r"none\.yml: No such file"):
        load_config(tmp_path / "none.yml")


def test_variables_stand_in_braces_without_quotes() -> None:
    config = read_config(
        "models: {a: {provider: o, base_url: http://${HOST}:1, model: '${A}${A}', api_key: ${A}}}",
        environ={"HOST": "h", "A": "}{"},
    )
    (target,) = config.models["a"].endpoints
    assert (target.base_url, target.model, target.api_key) == ("http://h:1", "}{}{", Secret("}{"))


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


BOMB = "bomb: [" + ", ".join(f"&a{n} [{', '.join([f'*a{n - 1}' if n else 'x'] * 9)}]" for n in range(7)) + "]"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "g.yml: expected a mapping with `models`"),
        ("[", "g.yml, line 1: not YAML"),
        ("a: \x00", "g.yml: not YAML"),
        ("models: {}\n---\nmodels: {}", "g.yml, line 2: expected one document, not several"),
        ("listen: {}", "g.yml: models: the key is missing"),
        ("models:\n  a: x\n  b*c: {provider: o}", "g.yml, line 2: models.a: expected a mapping"),
        ("models:\n  a: {provider: o}\n  b*c: {provider: o}", "g.yml, line 3: models.b*c: a * is allowed only at the end of a name"),
        ("models:\n  a: {provider: o, aliases: '*c'}", "g.yml, line 2: models.a: a * is allowed only at the end of a name"),
        (b"a: 1\n\xff", "g.yml, line 2: not YAML"),
        ("models: {}", "g.yml, line 1: models: expected at least one model"),
        ("models: 3", "g.yml, line 1: models: expected object, got number"),
        ("models:", "g.yml, line 1: models: the key is missing"),
        ("models:\n  a: {provder: x}", "g.yml, line 2: models.a.provder: unknown key, did you mean 'provider'?"),
        ("models:\n  a: {zzz: x}", "g.yml, line 2: models.a.zzz: unknown key; known: endpoints, aliases, defaults, "
         "timeouts, retry, on_unsupported, price, provider, model, base_url, api_key, headers, takes_media, model_class, weight, "
         "options, formats, counts_tokens"),
        ("models: {a: {endpoints: [{provider: x}], modl: 1}}", "g.yml, line 1: models.a.modl: unknown key, did you mean 'model'?"),
        ("models: {a: []}", "g.yml, line 1: models.a.endpoints: a model needs an endpoint"),
        ("models: {a: 7}", "g.yml, line 1: models.a: expected a mapping"),
        ("models: {a: {aliases: {b: c}, provider: x}}", "g.yml, line 1: models.a.aliases.0: expected a text in quotes"),
        ("models: {a: {provider: 7}}", "g.yml, line 1: models.a.endpoints.0.provider: expected a text in quotes"),
        ("models: {a: {provider: }}", "g.yml, line 1: models.a.endpoints.0.provider: the key is missing"),
        ("models: {a: {provider: []}}", "g.yml, line 1: models.a.endpoints.0.provider: expected a text"),
        ("models: {a: {provider: x, weight: 0}}", "g.yml, line 1: models.a.endpoints.0.weight: expected a number above 0"),
        ("models: {a: {provider: x, weight: y}}", "g.yml, line 1: models.a.endpoints.0.weight: expected number, got string"),
        ("models: {a: {provider: x, takes_media: 1}}", "g.yml, line 1: models.a.endpoints.0.takes_media: expected boolean, got number"),
        ("models: {a: {provider: x, api_key: '${SEC'}}", "g.yml, line 1: models.a.api_key: expected ${NAME}, with its brace"),
        ("models: {a: {provider: x, api_key: '${NO}'}}", "g.yml, line 1: models.a.api_key: the environment has no NO"),
        ("models: {a: {provider: x, api_key: \"a\\nb\"}}", "g.yml, line 1: models.a.endpoints.0.api_key: a credential must be printable ASCII without line breaks, not empty"),
        ("models: {a: {provider: x, api_key: {path: x}}}", "g.yml, line 1: models.a.endpoints.0.api_key: expected a text, or {file: PATH}"),
        ("models: {a: {provider: x, api_key: {file: /no/file}}}", "g.yml, line 1: models.a.endpoints.0.api_key.file: No such file or directory"),
        ("models: {a: {provider: x, api_key: {file: /dev/null}}}", "g.yml, line 1: models.a.endpoints.0.api_key.file: the file holds no credential"),
        ("models: {a: {provider: x, options: 3}}", "g.yml, line 1: models.a.endpoints.0.options: expected object, got number"),
        ("models: {a: {provider: x, options: {a: !!timestamp 2020-01-01}}}", "g.yml, line 1: models.a.options.a: expected what JSON has; put it in quotes"),
        ("models: {a: {provider: x, options: {a: !!int x}}}", "g.yml, line 1: models.a.options.a: expected what JSON has; put it in quotes"),
        (f"models: {{a: {{provider: x, options: {{a: {nested(70)}}}}}}}", "nested too deeply"),
        ("models:\n  a: {provider: x}\n  a: {provider: x}", "g.yml, line 3: models.a: is given twice"),
        ("models:\n  a:\n    provider: x\n    weight: -1", "g.yml, line 4: models.a.endpoints.0.weight: expected a number above 0"),
        ("models:\n  a.b:\n  - provider: x\n  - provider: y\n    weight: no", "g.yml, line 5: models.a.b.endpoints.1.weight: expected number, got boolean"),
        ("models:\n  a: {provider: x, options: {a: [1, &b {c: *b}]}}", "g.yml, line 2: models.a.options.a.1"),
        (ONE + "listen: 127.0.0.1:70000", "g.yml, line 2: listen.port: expected a port, from 0 to 65535"),
        (ONE + "listen: 8080", "g.yml, line 2: listen: expected a mapping"),
        ("models: {[a]: {provider: x}}", "g.yml, line 1: models: expected a plain key"),
        ("models:\n  a: {provider: o, aliases: [b]}\n  b: {provider: o}", "g.yml, line 2: models.a.aliases: 'b' names two models"),
        (ONE + "listen: 0.0.0.0:1", "g.yml, line 2: listen: without keys, everybody who reaches 0.0.0.0 could use it: add keys, or set open: true"),
        (ONE + "listen: {host: gateway.example}", "g.yml, line 2: listen: without keys, everybody who reaches gateway.example could use it: add keys, or set open: true"),
        (ONE + "listen: here", "g.yml, line 2: listen: expected host:port, or a mapping"),
        (ONE + "listen: {port: 70000}", "g.yml, line 2: listen.port: expected a port, from 0 to 65535"),
        (ONE + "listen: {workers: 2}\nkeys: {k: {hash: '" + HASH + "', requests_per_minute: 1}}", "g.yml, line 3: keys: several workers, each of which would count by itself what keys may: give redis"),
        (ONE + "limits: {body_bytes: 1.5}", "g.yml, line 2: limits.body_bytes: expected integer, got number"),
        (ONE + "on_unsupported: ignore", "g.yml, line 2: on_unsupported: expected 'refuse' or 'drop', got another string"),
        (ONE + "retry: {attempts: 0}", "g.yml, line 2: retry.attempts: attempts must be a whole number of at least 1"),
        (ONE + "retry: {kinds: [oops]}", "g.yml, line 2: retry.kinds.0: expected one of rate_limit, quota, "),
        (ONE + "listen: {port: 1:30}", "g.yml, line 2: listen.port: expected what JSON has; put it in quotes"),
        (ONE + "limits: {head_seconds: 1:30.5}", "g.yml, line 2: limits.head_seconds: expected what JSON has"),
        ("models: {'': {provider: x}}", "g.yml, line 1: models: expected a plain key"),
        ("models: {~: {provider: x}}", "g.yml, line 1: models: expected a plain key"),
        (ONE + "listen: {trusted_proxies: [10.0.0.0/8, 999.1.1.1]}", "g.yml, line 2: listen.trusted_proxies.1: expected an IP address, a network such as 10.0.0.0/8, or *"),
        (ONE + BOMB, "g.yml, line 2: bomb: more than 100000 values, by its aliases"),
        (ONE + "keys: {k: {hash: cw-secret}}", "g.yml, line 2: keys.k.hash: expected a hash, as `crosswalk serve --new-key` prints it"),
        (ONE + "keys:\n  k: {hash: '" + HASH + "', models: [b, 'z*']}", "g.yml, line 3: keys.k.models: no model of the file is called 'b'; an alias does not count"),
        (ONE + "keys:\n  k: {hash: '" + HASH + "'}\n  l: {hash: '" + HASH + "'}", "g.yml, line 4: keys.l.hash: the same hash as that of 'k'"),
        (ONE + "keys:\n  k: {hash: '" + HASH + "', expires: 2027-01-31}", "g.yml, line 3: keys.k.expires: expected an ISO 8601 time with its zone, got '2027-01-31'"),
        (ONE + "keys: {k: {hash: '" + HASH + "', budget_per_month: 0}}", "g.yml, line 2: keys.k.budget_per_month: expected a number above 0"),
        (ONE + "keys: {k: {}}", "g.yml, line 2: keys.k.hash: the key is missing"),
    ],
)  # fmt: skip
def test_a_mistake_is_said_with_its_line_and_key(text: str, error: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        read(text)
    assert error in str(raised.value)
    assert str(raised.value).startswith("g.yml")
    assert raised.value.source == "g.yml"


@pytest.mark.parametrize("proxies", ["'*'", "[10.0.0.1, '::1', 10.0.0.0/8]"])
def test_addresses_and_networks_of_proxies_are_trusted(proxies: str) -> None:
    assert read(ONE + f"listen: {{trusted_proxies: {proxies}}}").listen.trusted_proxies


def test_one_endpoint_may_stand_alone_beside_other_keys_of_its_model() -> None:
    alone, listed = (
        read(f"models: {{fast: {{endpoints: {endpoints}, aliases: [b]}}}}").models["fast"]
        for endpoints in ("{provider: ollama, model: m}", "[{provider: ollama, model: m}]")
    )
    assert alone == listed
    assert alone.endpoints[0].model == "m"
