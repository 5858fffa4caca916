"""The address of a provider, the source of it, and the secrets that are never shown."""

from __future__ import annotations

import pickle
from typing import Any

import attrs
import pytest

from crosswalk import ConfigurationError, registry
from crosswalk.config import Settings
from crosswalk.plugins import Access, ProviderInfo
from crosswalk.service import Endpoint, LLMService, Secret, SyncLLMService
from crosswalk.service.endpoint import join_url, resolve
from wires import Echo, registry_of


def route(endpoint: Endpoint, **environ: str) -> Any:
    return resolve(endpoint, registry.mapper(endpoint.provider), environ)


@pytest.mark.parametrize(
    ("base", "path", "url"),
    [
        ("http://h:1", "/v1/chat", "http://h:1/v1/chat"),
        ("http://h:1/", "/v1/chat", "http://h:1/v1/chat"),
        ("http://h:1/v1", "/v1/chat", "http://h:1/v1/chat"),
        ("http://h:1/v1/", "/v1/chat", "http://h:1/v1/chat"),
        ("http://h:1/api/v1", "/v1/chat", "http://h:1/api/v1/chat"),
        ("http://h:1/proxy", "/v1/chat", "http://h:1/proxy/v1/chat"),
        ("http://h:1/v1/chat", "/v1/chat", "http://h:1/v1/chat"),
        ("http://h/x?api-version=1", "/chat", "http://h/x/chat?api-version=1"),
        ("http://h", "/m:stream?alt=sse", "http://h/m:stream?alt=sse"),
        ("http://h?a=1", "/m:stream?alt=sse", "http://h/m:stream?alt=sse&a=1"),
    ],
)
def test_a_path_below_a_base_url(base: str, path: str, url: str) -> None:
    assert join_url(base, path) == url


@pytest.mark.parametrize(
    ("environ", "url"),
    [
        ({}, "http://127.0.0.1:11434"),
        ({"OLLAMA_HOST": "http://h:1/x"}, "http://h:1/x"),
        ({"OLLAMA_HOST": "0.0.0.0"}, "http://127.0.0.1:11434"),
        ({"OLLAMA_HOST": ":8080"}, "http://127.0.0.1:8080"),
        ({"OLLAMA_HOST": "h"}, "http://h:11434"),
        ({"OLLAMA_HOST": "h:1/x"}, "http://h:1/x"),
        ({"OLLAMA_HOST": "[::1]"}, "http://[::1]:11434"),
        ({"OLLAMA_HOST": "h", "CROSSWALK_OLLAMA_BASE_URL": "https://other"}, "https://other"),
        ({"OLLAMA_HOST": "  "}, "http://127.0.0.1:11434"),
    ],
    ids=str,
)
def test_what_the_environment_says(environ: dict[str, str], url: str) -> None:
    assert route(Endpoint("ollama"), **environ).base_url == url


def test_an_argument_counts_more_than_the_environment() -> None:
    found = route(
        Endpoint("vllm", base_url="http://a", api_key="k1"), VLLM_BASE_URL="http://b", VLLM_API_KEY="k2"
    )
    assert found.base_url == "http://a"
    assert found.headers == {"Authorization": "Bearer k1"}


@pytest.mark.parametrize(
    ("provider", "variable", "header"),
    [
        ("openai", "OPENAI_API_KEY", {"Authorization": "Bearer k"}),
        ("openai", "CROSSWALK_OPENAI_API_KEY", {"Authorization": "Bearer k"}),
        ("anthropic", "ANTHROPIC_API_KEY", {"x-api-key": "k"}),
        ("gemini", "GEMINI_API_KEY", {"x-goog-api-key": "k"}),
        ("gemini", "GOOGLE_API_KEY", {"x-goog-api-key": "k"}),
        ("groq", "GROQ_API_KEY", {"Authorization": "Bearer k"}),
        ("llamacpp", "LLAMA_API_KEY", {"Authorization": "Bearer k"}),
    ],
)
def test_each_provider_wants_its_key_in_its_way(provider: str, variable: str, header: dict[str, str]) -> None:
    assert route(Endpoint(provider), **{variable: "k"}).headers == header


@pytest.mark.parametrize("provider", ["openai", "anthropic", "gemini", "mistral", "xai"])
def test_a_service_on_the_internet_needs_a_key(provider: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{provider}: no API key.*{provider.upper()}_API_KEY"):
        route(Endpoint(provider))
    route(Endpoint(provider, base_url="http://127.0.0.1:1"))
    route(Endpoint(provider, headers={"Authorization": "Custom x"}))


@pytest.mark.parametrize("provider", ["ollama", "vllm", "llamacpp", "lmstudio", "sglang"])
def test_a_server_of_ones_own_does_not(provider: str) -> None:
    assert route(Endpoint(provider)).headers == {}


def test_a_plugin_that_does_not_know_where_it_is() -> None:
    mapper = registry_of(echo=Echo()).mapper("echo")
    with pytest.raises(ConfigurationError, match="CROSSWALK_ECHO_BASE_URL"):
        resolve(Endpoint("echo"), mapper, {})
    found = resolve(Endpoint("echo", api_key="k"), mapper, {"CROSSWALK_ECHO_BASE_URL": "h:1"})
    assert (found.base_url, found.headers) == ("http://h:1", {"Authorization": "Bearer k"})
    assert resolve(Endpoint("echo", base_url="h"), mapper, {}).base_url == "http://h"
    assert resolve(Endpoint("echo", base_url="h"), mapper, {}).host == ("h", None)
    described = attrs.evolve(mapper, info=ProviderInfo(title="E", access=Access(base_url="http://h:7")))
    assert resolve(Endpoint("echo"), described, {}).base_url == "http://h:7"
    named = attrs.evolve(mapper, info=ProviderInfo(title="E", access=Access.by_name("http://h:7", "ECHO")))
    found = resolve(Endpoint("echo"), named, {"ECHO_BASE_URL": "h:8", "ECHO_API_KEY": "k"})
    assert (found.base_url, found.headers) == ("http://h:8", {"Authorization": "Bearer k"})


@pytest.mark.parametrize(
    "url",
    [
        "ftp://h",
        "http://",
        "http://h:0",
        "http://h:x",
        "http://[::1",
        "http://user:secret@h",
        "http://secret@h",
        "http://h/ x",
        "http://h/\n",
        "http://hé",
    ],
)
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(ConfigurationError, match="vllm: base_url") as raised:
        route(Endpoint("vllm", base_url=url))
    assert "secret" not in str(raised.value)


def test_a_wrong_variable_is_named_and_not_quoted() -> None:
    with pytest.raises(ConfigurationError, match="VLLM_API_KEY") as raised:
        route(Endpoint("vllm"), VLLM_API_KEY="sec\nret")
    assert "ret" not in str(raised.value).replace("VLLM_API_KEY", "")


@pytest.mark.parametrize("value", ["", "a\nb", "é", " a", 7, None])
def test_a_credential_is_what_a_header_can_carry(value: Any) -> None:
    with pytest.raises(ConfigurationError):
        Secret(value)


@pytest.mark.parametrize("name", ["", "a b", "a:b", "é", "a\n"])
def test_a_headers_name_is_a_token(name: str) -> None:
    with pytest.raises(ConfigurationError):
        Endpoint("vllm", headers={name: "x"})


def test_a_secret_is_not_shown() -> None:
    secret = Secret("hush")
    endpoint = Endpoint(
        "vllm",
        model="m",
        api_key=secret,
        headers={"X": "hush", "Y": secret},
        base_url="http://a:hush@h/p?key=hush",
    )
    found = route(Endpoint("vllm", api_key="hush"))
    for shown in (
        repr(secret),
        f"{secret}",
        repr(endpoint),
        repr(found),
        repr(attrs.asdict(endpoint)["api_key"]),
    ):
        assert "hush" not in shown
    assert secret.reveal() == "hush"
    assert secret == Secret("hush")
    assert hash(secret) == hash(Secret("hush"))
    assert secret != "hush"
    assert "base_url='http://h/p'" in repr(endpoint)
    assert pickle.loads(pickle.dumps(secret)) == secret


def test_the_settings_name_the_default_provider() -> None:
    service = LLMService(settings=Settings(default_provider="vllm"))
    assert repr(service) == "LLMService(Endpoint(provider='vllm'))"
    assert repr(LLMService("ollama", settings=Settings())) == "LLMService(Endpoint(provider='ollama'))"


def test_the_settings_are_read_where_none_are_given(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CROSSWALK_DEFAULT_PROVIDER", "llamacpp")
    assert "llamacpp" in repr(LLMService())


@pytest.mark.parametrize(
    ("endpoints", "options"),
    [
        ((), {}),
        (("vllm",), {"on_unsupported": "ignore"}),
        (("vllm",), {"client": object(), "client_options": {"http2": True}}),
    ],
)
def test_a_service_that_cannot_be_made(endpoints: Any, options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        LLMService(*endpoints, settings=Settings(), **options)


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        ({"retry": -1}, "retry"),
        ({"retry": "often"}, "retry"),
        ({"timeout": 0}, "timeout"),
        ({"timeout": "long"}, "timeout"),
        ({"max_concurrency": 0}, "max_concurrency"),
        ({"limits": 4}, "limits"),
        ({"client": 4}, "client"),
        ({"client_options": {"bogus": 3}}, "client_options"),
        ({"client_options": 3}, "client_options"),
        ({"unknown": "bogus"}, "unknown"),
        ({"failures": [0]}, "failures"),
        ({"failures": 1}, "failures"),
        ({"on_unsupported": "bogus"}, "on_unsupported"),
        ({"keep_raw": "yes"}, "keep_raw"),
        ({"observers": 5}, "observers"),
        ({"observers": [5]}, "observers"),
        ({"settings": {}}, "settings"),
        ({"registry": {}}, "registry"),
        ({"timer": 0.5}, "timer"),
        ({"clock": None}, "clock"),
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", [LLMService, SyncLLMService])
def test_a_wrong_argument_is_refused_at_once(kind: Any, arguments: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        kind(Endpoint("vllm", model="m"), **{"settings": Settings(), **arguments})
    assert raised.value.key == key


@pytest.mark.parametrize("url", ["//h", "/v1"])
def test_a_path_is_no_address(url: str) -> None:
    with pytest.raises(ConfigurationError, match="must be like"):
        LLMService(Endpoint("vllm", model="m", base_url=url), settings=Settings())


@pytest.mark.parametrize("endpoint", [7, None, "echo"])
def test_what_cannot_be_asked_is_refused_at_once(endpoint: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"endpoints must be|builds no requests"):
        LLMService(endpoint, settings=Settings(), registry=registry_of(echo=Echo()))
