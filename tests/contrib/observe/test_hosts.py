"""The provider of the server that a URL leads to."""

from __future__ import annotations

from typing import Any

import pytest

from crosswalk import Registry, hookimpl, registry
from crosswalk.errors import PluginError
from crosswalk.plugins import Access, ProviderInfo
from crosswalk.service import Hosts, Site
from crosswalk_observe import Watcher

from .conftest import Seen, capture


def site(url: str, environ: dict[str, str] | None = None, **given: Any) -> Site | None:
    return Hosts(registry, environ=environ or {}, **given).site(url)


@pytest.mark.parametrize(
    ("url", "providers", "model"),
    [
        ("https://api.openai.com/v1/chat/completions", ("openai",), None),
        ("https://api.openai.com:443/v1/completions?x=1#y", ("openai",), None),
        ("https://API.openai.com/v1/responses", ("openai_responses",), None),
        ("https://api.anthropic.com/v1/messages?beta=true", ("anthropic",), None),
        ("https://api.groq.com/openai/v1/chat/completions", ("groq",), None),
        ("https://openrouter.ai/api/v1/chat/completions", ("openrouter",), None),
        ("https://api.perplexity.ai/chat/completions", ("perplexity",), None),
        ("https://api.cohere.com/v2/chat", ("cohere",), None),
        ("https://api.fireworks.ai/inference/v1/chat/completions", ("fireworks",), None),
        (
            "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.0-flash:generateContent",
            ("gemini",),
            "gemini-2.0-flash",
        ),
        (
            "https://bedrock-runtime.eu-central-1.amazonaws.com/model/anthropic.claude%3A0/converse-stream",
            ("bedrock",),
            "anthropic.claude:0",
        ),
        ("http://localhost:11434/api/chat", ("ollama",), None),
        ("http://127.0.0.1:11434/v1/chat/completions", ("ollama",), None),
        ("http://[::1]:8000/v1/messages", ("vllm",), None),
        ("http://localhost:3000/", ("tgi",), None),
        ("http://localhost:3000", ("tgi",), None),
    ],
)
def test_the_address_of_a_provider_tells_whose_it_is(
    url: str, providers: tuple[str, ...], model: str | None
) -> None:
    found = site(url)
    assert found is not None
    assert (found.providers, found.model) == (providers, model)
    assert found.is_sure is url.startswith("https:")


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:3000/login",
        "http://[broken/v1/chat/completions",
        "http://api.openai.com:port/v1/chat/completions",
        "ftp://api.openai.com/v1/chat/completions",
        "/v1/chat/completions",
        "",
    ],
)
def test_what_is_no_providers_is_nobodys(url: str) -> None:
    assert site(url) is None


@pytest.mark.parametrize(
    ("variable", "value", "url", "provider"),
    [
        ("OPENAI_BASE_URL", "https://gateway.example/openai/v1", "https://gateway.example/openai/v1/chat/completions", "openai"),
        ("OPENAI_BASE_URL", "https://gateway.example/x", "https://gateway.example/x/responses", "openai_responses"),
        ("GROQ_BASE_URL", "http://gateway.example:81/v1", "http://gateway.example:81/v1/chat/completions", "groq"),
        ("CROSSWALK_MISTRAL_BASE_URL", "https://m.example", "https://m.example/v1/chat/completions", "mistral"),
        ("OLLAMA_HOST", "gpu.example", "http://gpu.example:11434/api/chat", "ollama"),
        ("OLLAMA_HOST", "0.0.0.0:5000", "http://localhost:5000/api/chat", "ollama"),
    ],
)  # fmt: skip
def test_the_environment_says_where_a_provider_is_too(
    variable: str, value: str, url: str, provider: str
) -> None:
    found = site(url, {variable: value})
    assert found is not None
    assert found.providers == (provider,)
    for broken in ("http://[broken", "http://:80"):
        elsewhere = site(url, {variable: broken})
        assert elsewhere is not None
        assert not elsewhere.is_known


def test_the_owner_of_an_address_counts_more_than_who_is_asked_there_in_its_place() -> None:
    environ = {"OPENAI_BASE_URL": "https://openrouter.ai/api/v1"}
    found = site("https://openrouter.ai/api/v1/chat/completions", environ)
    assert found is not None
    assert found.providers == ("openrouter",)
    local = site("http://localhost:8000/v1/chat/completions", {"OPENAI_BASE_URL": "http://localhost:8000/v1"})
    assert local is not None
    assert local.providers == ("vllm", "openai")


def test_the_user_says_whose_a_host_is() -> None:
    url = "https://llm.corp.example/any/v1/chat/completions"
    for name in ("llm.corp.example", "llm.corp.example:443", "*.corp.example", "LLM.corp.example"):
        found = site(url, providers={"other.example": "ollama", name: "vllm"})
        assert found == Site("llm.corp.example", 443, ("vllm",), True)
        assert site(url, providers={name: "vllm"}, exclude=[name]) is None
    assert site("https://llm.corp.example/v1/models", providers={"llm.corp.example": "vllm"}) is None


def test_of_an_included_host_the_path_tells_who_it_may_be() -> None:
    found = site("https://gateway.example/v1/chat/completions", include=["gateway.example"])
    assert found is not None
    assert found.providers[0] == "openai"
    assert {"vllm", "ollama", "mistral"} <= set(found.providers)
    assert not found.is_sure
    assert site("https://gateway.example/v1/models", include=["gateway.example"]) is None


# ------------------------------------------------------------------- servers that nobody has named


WATCHED = """
https://r.openai.azure.com/openai/deployments/g/chat/completions?api-version=2025-01-01 openai
https://r.openai.azure.com/openai/v1/chat/completions openai
https://r.openai.azure.com/openai/v1/responses openai_responses
https://r.openai.azure.com/openai/responses?api-version=preview openai_responses
https://r.services.ai.azure.com/models/chat/completions openai
https://r.services.ai.azure.com/anthropic/v1/messages anthropic
https://r.cognitiveservices.azure.com/openai/deployments/g/chat/completions openai
https://eu.api.openai.com/v1/chat/completions openai
https://eu.api.openai.com/v1/responses openai_responses
https://us-central1-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/google/models/g:generateContent gemini
https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/google/models/g:streamGenerateContent gemini
https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/anthropic/models/c:rawPredict anthropic
https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/anthropic/models/c:streamRawPredict anthropic
https://us-central1-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/mistralai/models/m:rawPredict mistral
https://us-central1-aiplatform.googleapis.com/v1/projects/p/locations/l/endpoints/openapi/chat/completions openai
https://us-central1-aiplatform.googleapis.com/v1/projects/p/locations/l/endpoints/1:generateContent gemini
https://us-central1-aiplatform.googleapis.com/v1/projects/p/locations/l/endpoints/1:streamGenerateContent?alt=sse gemini
https://generativelanguage.googleapis.com/v1beta/openai/chat/completions gemini
https://generativelanguage.googleapis.com/v1/models/g:generateContent gemini
https://bedrock-runtime.us-east-1.amazonaws.com/openai/v1/chat/completions openai
https://bedrock-runtime.us-east-1.amazonaws.com/model/anthropic.claude/invoke anthropic
https://bedrock-runtime.us-east-1.amazonaws.com/model/anthropic.claude/invoke-with-response-stream anthropic
https://bedrock-mantle.us-east-1.api.aws/anthropic/v1/messages anthropic
https://vpce-0a-bedrock-runtime.us-east-1.vpce.amazonaws.com/model/anthropic.claude/converse bedrock
https://bedrock-runtime-fips.us-east-1.amazonaws.com/model/anthropic.claude/converse-stream bedrock
http://host.docker.internal:11434/api/chat ollama
http://host.docker.internal:11434/api/generate ollama
http://host.docker.internal:11434/v1/chat/completions openai
http://vllm.internal:8000/v1/chat/completions openai
http://gpu-1:8000/v1/completions openai
http://192.168.1.5:11434/api/chat ollama
http://127.0.0.1:8001/v1/chat/completions openai
http://127.0.0.1:24017/v1/chat/completions openai
http://[fd00::1]:8000/v1/messages anthropic
https://api.cerebras.ai/v1/chat/completions openai
https://integrate.api.nvidia.com/v1/chat/completions openai
https://router.huggingface.co/v1/chat/completions openai
https://router.huggingface.co/v1/responses openai_responses
https://api.moonshot.ai/v1/chat/completions moonshot
https://api.moonshot.ai/anthropic/v1/messages moonshot
https://dashscope-intl.aliyuncs.com/compatible-mode/v1/chat/completions dashscope
https://models.github.ai/inference/chat/completions openai
https://api.z.ai/api/paas/v4/chat/completions zai
https://api.z.ai/api/anthropic/v1/messages zai
https://api.minimax.io/v1/chat/completions minimax
https://api.deepinfra.com/v1/openai/chat/completions openai
https://api.sambanova.ai/v1/chat/completions openai
https://ark.cn-beijing.volces.com/api/v3/chat/completions openai
https://api.hyperbolic.xyz/v1/chat/completions openai
https://api.novita.ai/v3/openai/chat/completions openai
https://api.siliconflow.cn/v1/chat/completions openai
https://gateway.ai.cloudflare.com/v1/a/g/openai/chat/completions openai
https://gateway.ai.cloudflare.com/v1/a/g/anthropic/v1/messages anthropic
https://api.cloudflare.com/client/v4/accounts/a/ai/v1/chat/completions cloudflare
https://ai-gateway.vercel.sh/v1/chat/completions openai
https://api.portkey.ai/v1/chat/completions openai
https://oai.helicone.ai/v1/chat/completions openai
https://w.cloud.databricks.com/serving-endpoints/chat/completions openai
https://api.openai.com:8443/v1/chat/completions openai
https://litellm.corp.example/chat/completions openai
https://litellm.corp.example/responses openai_responses
https://tgi.corp.example/generate tgi
http://litellm:4000/bedrock/model/anthropic.claude/converse bedrock
http://litellm:4000/vertex_ai/v1/projects/p/locations/l/publishers/google/models/g:generateContent gemini
https://api.githubcopilot.com/chat/completions openai
https://api.githubcopilot.com/v1/messages anthropic
https://chatgpt.com/backend-api/codex/responses openai_responses
https://api.kimi.com/coding/v1/messages anthropic
https://api.deepseek.com/anthropic/v1/messages deepseek
https://openrouter.ai/api/v1/messages openrouter
https://w.snowflakecomputing.com/api/v2/cortex/v1/chat/completions openai
https://api.x.ai/v1/messages xai
https://api.mistral.ai/v1/agents/completions mistral
https://api.cloudflare.com/client/v4/accounts/a/ai/run/@cf/meta/llama-3.1-8b-instruct cloudflare
https://gateway.ai.cloudflare.com/v1/a/g/workers-ai/@cf/meta/llama-3.1-8b-instruct cloudflare
https://runtime.sagemaker.us-east-1.amazonaws.com/endpoints/llama/invocations tgi
https://w.cloud.databricks.com/serving-endpoints/llama/invocations openai
https://adb-1.2.azuredatabricks.net/serving-endpoints/llama/invocations openai
https://e.eastus.inference.ml.azure.com/v1/chat/completions openai
"""


@pytest.mark.untraced
@pytest.mark.parametrize("line", WATCHED.split("\n")[1:-1])
def test_a_request_that_names_a_model_is_watched_at_any_host(
    line: str, caplog: pytest.LogCaptureFixture
) -> None:
    url, provider = line.split()
    body = b'{"model": "m", "messages": [], "contents": [], "inputs": "Why?", "input": "Why?"}'
    with Watcher(in_background=False) as watcher:
        exchange = watcher.begin("POST", url, {}, body)
        assert exchange is not None
        assert provider in exchange.site.providers
        assert exchange.model is not None
        exchange.answered(307, {})
        assert watcher.passed_over == 0
    assert caplog.records == []


@pytest.mark.parametrize(
    ("url", "body"),
    [
        ("https://vllm.internal:8000/v1/chat/completions", None),
        ("https://vllm.internal:8000/v1/chat/completions", b'{"messages": []}'),
        ("https://vllm.internal:8000/v1/chat/completions", b'{"model": ""}'),
        ("https://vllm.internal:8000/v1/messages", b'["model"]'),
        ("https://vllm.internal:8000/api/chat", b"model=m"),
    ],
)
def test_a_request_that_names_no_model_is_passed_over_counted_and_named_once(
    url: str, body: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    with Watcher(in_background=False) as watcher:
        assert watcher.begin("POST", url, {}, body) is None
        assert watcher.begin("POST", url, {}, body) is None
        assert watcher.passed_over == 2
    last = url.rpartition("/")[2]
    assert [record.getMessage() for record in caplog.records] == [
        f"not watched: a POST to vllm.internal:8000, …/{last}: it names no model; "
        "include=['vllm.internal:8000'] watches it"
    ]
    with Watcher(in_background=False, include=["vllm.internal:8000"]) as watcher:
        assert watcher.begin("POST", url, {}, body) is not None


@pytest.mark.parametrize("path", ["chat/completions?api-version=2025-01-01", "completions"])
def test_a_deployment_of_azure_needs_no_model_in_the_body(path: str) -> None:
    with Watcher(in_background=False) as watcher:
        url = f"https://r.openai.azure.com/openai/deployments/gpt-eu/{path}"
        exchange = watcher.begin("POST", url, {}, b'{"messages": []}')
        assert exchange is not None
        assert (exchange.site.providers[0], exchange.model) == ("openai", "gpt-eu")
        exchange.discard()


UNREAD = """
https://us-central1-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/google/models/imagen-4:predict
https://us-central1-aiplatform.googleapis.com/v1/projects/p/locations/l/endpoints/1:predict
https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/meta/models/l:rawPredict
https://runtime.sagemaker.us-east-1.amazonaws.com/endpoints/trees/invocations
https://runtime.sagemaker.us-east-1.amazonaws.com/endpoints/llama/invocations-response-stream
https://e.eastus.inference.ml.azure.com/score
https://us-south.ml.cloud.ibm.com/ml/v1/text/chat
https://api.replicate.com/v1/predictions
https://api.replicate.com/v1/models/meta/llama/predictions
https://w.snowflakecomputing.com/api/v2/cortex/inference:complete
https://w.cloud.databricks.com/serving-endpoints/trees/invocations
https://adb-1.2.azuredatabricks.net/serving-endpoints/trees/invocations
"""
"""Models on platforms, whose requests need not say what they are."""

UNREAD_AT_A_VENDOR = """
https://api.openai.com/v1/responses/compact
https://api.openai.com/v1/responses/input_tokens
https://api.openai.com/v1/videos
https://api.anthropic.com/v1/messages/count_tokens
https://api.mistral.ai/v1/conversations/conv_1
https://api.mistral.ai/v1/ocr
"""


@pytest.mark.parametrize("url", (UNREAD + UNREAD_AT_A_VENDOR).split())
def test_an_address_of_a_vendor_that_is_not_read_is_counted_and_named_once(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    body = b'{"model": "m"}' if url in UNREAD_AT_A_VENDOR else b'{"rows": []}'
    with Watcher(in_background=False) as watcher:
        for _ in range(2):
            assert watcher.begin("POST", url, {}, body) is None
        assert watcher.passed_over == 2
        assert watcher.begin("GET", url) is None
        assert watcher.passed_over == 2
    host, last = url.split("/")[2], url.rpartition("/")[2]
    assert [record.getMessage() for record in caplog.records] == [
        f"not watched: a POST to {host}:443, …/{last}: no plugin reads its answer"
    ]


@pytest.mark.parametrize("path", ["batches", "files", "responses/resp_1/cancel"])
def test_a_request_to_a_vendor_that_names_no_model_is_nobodys(
    path: str, caplog: pytest.LogCaptureFixture
) -> None:
    with Watcher(in_background=False) as watcher:
        assert (
            watcher.begin("POST", f"https://api.openai.com/v1/{path}", {}, b'{"input_file_id": "f"}') is None
        )
        assert (
            watcher.begin("POST", "http://localhost:8000/tokenize", {}, b'{"model": "m", "prompt": "x"}')
            is None
        )
        assert watcher.passed_over == 0
    assert caplog.records == []


def test_without_plugins_nothing_is_watched() -> None:
    with Watcher(in_background=False, registry=Registry(installed=[])) as watcher:
        for path in ("model/m/invoke", "v1/embeddings"):
            assert watcher.begin("POST", f"https://llm.example/{path}", {}, b'{"model": "m"}') is None


@pytest.mark.parametrize(
    ("url", "body"),
    [
        ("https://chat.example/api/v10/channels/1/messages", b'{"content": "Hi"}'),
        ("https://cars.example/messages", b'{"model": "A4"}'),
        ("https://pdf.example/generate", b'{"template": "x"}'),
        ("https://rpc.example/", b'{"model": "m", "messages": []}'),
    ],
)
def test_what_only_ends_like_a_path_of_a_plugin_is_nobodys(
    url: str, body: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    with Watcher(in_background=False) as watcher:
        assert watcher.begin("POST", url, {}, body) is None
        assert watcher.passed_over == 0
    assert caplog.records == []


def test_what_the_answer_has_told_of_a_server_is_remembered_until_it_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import crosswalk_observe.reading as reading

    asked: list[object] = []
    detect = reading.detect

    def noted(body: bytes, *arguments: Any, **options: Any) -> str:
        asked.append(body)
        return detect(body, *arguments, **options)

    monkeypatch.setattr(reading, "detect", noted)
    monkeypatch.setattr(reading, "_MAX_DIALECTS", 1)
    ollama = capture("ollama/chat_length.response.json").body
    vllm = capture("vllm/chat_think.response.json").body

    def ask(body: bytes, model: str = "m", status: int = 200) -> str:
        exchange = watcher.begin(
            "POST", "http://localhost:8000/v1/chat/completions", {}, b'{"model": "%s"}' % model.encode()
        )
        assert exchange is not None
        exchange.answered(status, {})
        exchange.chunk(body)
        exchange.ended()
        return seen[-1].provider

    seen = Seen()
    with Watcher(seen, in_background=False) as watcher:
        assert [ask(ollama, status=500), len(asked)] == ["ollama", 1]
        assert [ask(ollama), ask(ollama), len(asked)] == ["ollama", "ollama", 2]
        assert [ask(vllm, "other"), ask(vllm, "other"), len(asked)] == ["vllm", "vllm", 3]
        assert [ask(b"no JSON", "other"), ask(ollama, "other")] == ["vllm", "ollama"]


@pytest.mark.parametrize(("plain_answers", "found"), [(7, "vllm"), (8, "openai")])
def test_the_first_eight_answers_of_a_server_are_asked_for_its_provider(
    plain_answers: int, found: str
) -> None:
    plain = (
        b'{"object": "chat.completion", "id": "c", "created": 1, "model": "m", "choices": [{"index": 0, '
        b'"message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}]}'
    )
    marked = capture("vllm/chat_think.response.json").body
    seen = Seen()
    with Watcher(seen, in_background=False) as watcher:
        for body in (*[plain] * plain_answers, marked, plain):
            exchange = watcher.begin(
                "POST", "https://gpu.example/v1/chat/completions", {}, b'{"model": "m", "messages": []}'
            )
            assert exchange is not None
            exchange.answered(200, {})
            exchange.chunk(body)
            exchange.ended()
    guessed = [
        "metadata.provider_id" in record.response.metadata.provenance if record.response else None
        for record in seen
    ]
    assert [record.provider for record in seen] == ["openai"] * plain_answers + [found] * 2
    assert guessed == [True] * plain_answers + [found == "openai"] * 2


class Stranger:
    """A stranger's plugin, of a server that only it knows."""

    def __init__(self, access: Access | None = None, endpoints: tuple[str, ...] = ()) -> None:
        self._info = ProviderInfo(title="Stranger", access=access, endpoints=endpoints)

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        return self._info

    @hookimpl
    def map_delta(self, event: Any, state: Any) -> None:
        return None


def test_a_strangers_plugin_is_known_as_soon_as_it_is_registered() -> None:
    own = Registry(installed=[])
    hosts = Hosts(own, environ={})
    url = "https://stranger.example/talk"
    assert hosts.site(url) is None
    own.register(Stranger(Access(base_url="https://stranger.example"), ("/talk",)), "stranger")
    assert hosts.site(url) == Site("stranger.example", 443, ("stranger",), True)
    own.block("stranger")
    assert hosts.site(url) is None


def test_of_a_plugin_without_endpoints_every_path_is_watched_where_the_user_names_its_host() -> None:
    own = Registry(installed=[])
    own.register(Stranger(), "stranger")
    hosts = Hosts(own, environ={}, providers={"stranger.example": "stranger"})
    assert hosts.site("https://stranger.example/any") == Site("stranger.example", 443, ("stranger",), True)


def test_a_broken_plugin_is_told_of_and_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    own = Registry(installed=[])
    own.register(object(), "broken")
    told: list[PluginError] = []
    assert Hosts(own, environ={}, broken=told.append).site("https://a.example/") is None
    assert [error.plugin for error in told] == ["broken"]
    Hosts(own, environ={})
    Watcher(registry=own)
    assert [
        "provider broken failed with PluginError" in record.getMessage() for record in caplog.records
    ] == [True]


# ---------------------------------------------------------------- where only the answer can tell


@pytest.mark.parametrize(
    ("url", "name", "provider", "is_derived"),
    [
        ("http://localhost:8000/v1/chat/completions", "vllm/chat_think.response.json", "vllm", False),
        ("http://localhost:8000/v1/responses", "openai_responses/openai_patch_stream.response.sse", "vllm", True),
        ("http://localhost:8000/v1/chat/completions", "ollama/chat_length.response.json", "ollama", False),
        ("http://localhost:8000/v1/messages", "anthropic/llama_stop_sequence.response.json", "vllm", True),
        ("https://gateway.example/v1/messages", "anthropic/llama_stop_sequence_stream.response.sse", "anthropic", True),
        ("https://gateway.example/api/chat", "ollama/chat_length_stream.response.ndjson", "ollama", False),
        ("https://gateway.example/v1/chat/completions", "openai/made_text.response.json", "openai", True),
    ],
)  # fmt: skip
def test_the_answer_decides_where_the_address_does_not(
    url: str, name: str, provider: str, is_derived: bool
) -> None:
    seen = Seen()
    with Watcher(seen, include=["gateway.example"], in_background=False) as watcher:
        exchange = watcher.begin("POST", url, {}, b'{"model":"m"}')
        assert exchange is not None
        exchange.answered(200, {})
        exchange.chunk(capture(name).body)
        exchange.ended()
    record = seen.one
    assert record.provider == provider
    assert record.response is not None
    assert ("metadata.provider_id" in record.response.metadata.provenance) is is_derived


def test_a_server_that_speaks_anothers_dialect_stays_itself() -> None:
    class Like(Stranger):
        @hookimpl
        def provider_info(self) -> ProviderInfo:
            access = Access(base_url="http://localhost:7777")
            return ProviderInfo(title="Like", access=access, speaks=("gemini", "ollama"))

    like = Like()
    registry.register(like, "like")
    try:
        seen = Seen()
        with Watcher(seen, in_background=False) as watcher:
            exchange = watcher.begin("POST", "http://localhost:7777/api/chat")
            assert exchange is not None
            exchange.answered(200, {})
            exchange.chunk(capture("ollama/chat_length.response.json").body)
            exchange.ended()
    finally:
        registry.unregister(like, "like")
    assert seen.one.provider == "like"
    assert seen.one.response is not None
    assert seen.one.response.metadata.provider_id == "like"
    assert seen.one.response.text
