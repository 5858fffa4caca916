"""LiteLLM's configuration becomes the gateway's, and what has no counterpart is listed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from crosswalk.cli import main
from crosswalk.errors import ConfigurationError
from crosswalk_serve import create_app
from crosswalk_serve.config import read_config
from crosswalk_serve.litellm_import import Imported, import_litellm

FILE = """
model_list:
  - model_name: gpt-4o
    litellm_params: {model: gpt-4o, api_key: os.environ/OPENAI_API_KEY, rpm: 30, organization: org-1}
  - model_name: gpt-4o
    litellm_params: {model: azure/mine, api_base: "https://x.example/", api_key: k, rpm: 10, extra_headers: {x-a: os.environ/A}}
  - model_name: claude
    litellm_params: {model: anthropic/claude-sonnet-4-6, api_key: k, max_tokens: 1000, timeout: 30}
  - model_name: local
    litellm_params: {model: hosted_vllm/qwen3, api_base: "http://gpu:8000/v1"}
    model_info: {input_cost_per_token: 0.0000001, output_cost_per_token: 0.0000002, mode: chat}
  - {model_name: answers, litellm_params: {model: openai/responses/gpt-5, api_key: k}}
  - {model_name: cloud, litellm_params: {model: m/x, custom_llm_provider: groq, api_key: k}}
  - {model_name: claude-*, litellm_params: {model: anthropic/claude-*, api_key: k}}
  - {model_name: any/*, litellm_params: {model: openai/*, api_key: k}}
  - {model_name: vertex, litellm_params: {model: vertex_ai/gemini-pro}}
  - {model_name: unknown, litellm_params: {model: llama}}
  - {litellm_params: {model: gpt-4o}}
  - 7
litellm_settings:
  drop_params: true
  num_retries: 2
  request_timeout: 60
  fallbacks: [{claude: [local, none]}, {none: [local]}]
  callbacks: [prometheus, langfuse]
  success_callback: otel
  cache: true
  set_verbose:
router_settings:
  routing_strategy: least-busy
  model_group_alias: {gpt-4: gpt-4o, hidden: {model: claude, hidden: true}, lost: none}
  cooldown_time: 5
general_settings: {master_key: os.environ/MASTER, database_url: x}
environment_variables: {A: b}
"""
WANTED = """
models:
  gpt-4o:
    endpoints:
      - {provider: openai, model: gpt-4o, api_key: "${OPENAI_API_KEY}", headers: {OpenAI-Organization: org-1}, weight: 30.0}
      - {provider: openai, model: mine, base_url: https://x.example/openai/v1, api_key: k, headers: {x-a: "${A}"}, weight: 10.0}
    aliases: [gpt-4]
  claude:
    endpoints:
      - {provider: anthropic, model: claude-sonnet-4-6, api_key: k}
      - {provider: vllm, model: qwen3, base_url: "http://gpu:8000/v1"}
    defaults: {max_tokens: 1000}
    timeouts: {total: 30.0}
    aliases: [hidden]
  local:
    endpoints: [{provider: vllm, model: qwen3, base_url: "http://gpu:8000/v1"}]
    price: {input_per_million: 0.1, output_per_million: 0.2}
  answers: {endpoints: [{provider: openai_responses, model: gpt-5, api_key: k}]}
  cloud: {endpoints: [{provider: groq, model: x, api_key: k}]}
  claude-*: {endpoints: [{provider: anthropic, api_key: k}]}
on_unsupported: drop
retry: {attempts: 3, cool_down_seconds: 5.0}
timeouts: {total: 60.0}
metrics: true
tracing: true
listen: 127.0.0.1:4000
"""
OMITTED = """\
model_list[0].litellm_params.rpm: endpoints have weights, but no limits
model_list[1].litellm_params.rpm: endpoints have weights, but no limits
model_list[3].model_info.mode: no counterpart
model_list[7]: the client's name 'any/*' would become '*'
model_list[8]: no provider for 'vertex_ai/gemini-pro'
model_list[9]: no provider for 'llama'
model_list[10]: no model_name
model_list[11]: no model_name
router_settings.routing_strategy: 'least-busy'; endpoints are chosen by weight
litellm_settings.fallbacks: no model 'none'
litellm_settings.fallbacks: no model 'none'
router_settings.model_group_alias: no model 'none'
litellm_settings.callbacks: 'langfuse'
litellm_settings.cache: no counterpart
general_settings.database_url: no counterpart
environment_variables: no counterpart
"""
MASTER = "sk-a-master-key-of-32-characters"


def imported(path: Path, text: str, **environ: str) -> Imported:
    path.write_text(text)
    return import_litellm(path, environ)


def test_a_configuration_is_carried_over(tmp_path: Path) -> None:
    found = imported(tmp_path / "litellm.yaml", FILE, MASTER=MASTER)
    read: dict[str, Any] = yaml.safe_load(found.text())
    key = read.pop("keys")["master"]
    assert read == yaml.safe_load(WANTED)
    assert found.omitted == tuple(OMITTED.splitlines())
    config = read_config(found.text(), environ={"OPENAI_API_KEY": "k", "A": "b"})
    assert config.keys["master"].hash.fits(MASTER)
    assert (config.keys["master"].metrics, key["metrics"]) == (True, True)
    assert create_app(config).state.gateway.router.find("gpt-4")


def test_a_small_one_needs_nothing_else(tmp_path: Path) -> None:
    text = (
        "model_list: [{model_name: a, litellm_params: {model: ollama_chat/llama3, base_url: 'http://x:1'}}]"
    )
    found = imported(tmp_path / "litellm.yaml", f"{text}\nrouter_settings: {{routing_strategy: least-busy}}")
    target = {"provider": "ollama", "model": "llama3", "base_url": "http://x:1"}
    assert found == Imported({"models": {"a": {"endpoints": [target]}}, "listen": "127.0.0.1:4000"}, ())


def test_azure_gets_its_own_key_from_the_environment(tmp_path: Path) -> None:
    text = "model_list: [{model_name: a, litellm_params: {model: azure/mine, api_base: 'https://x.example'}}]"
    (target,) = imported(tmp_path / "litellm.yaml", text).config["models"]["a"]["endpoints"]
    assert target["api_key"] == "${AZURE_API_KEY}"


def test_an_endpoint_does_not_give_its_options_to_the_first(tmp_path: Path) -> None:
    one = "{model_name: a, litellm_params: {model: openai/gpt-5, api_key: k}}"
    text = f"model_list: [{one}, {one.replace('k}', 'k, max_tokens: 9}')}]"
    found = imported(tmp_path / "litellm.yaml", text)
    assert found.config["models"]["a"].keys() == {"endpoints"}
    assert found.omitted == ("model_list[1].litellm_params: other defaults than the first endpoint of a",)


def test_endpoints_of_a_model_share_its_options(tmp_path: Path) -> None:
    one = "{model_name: a, litellm_params: {model: openai/gpt-5, api_key: k, temperature: T}}"
    text = f"model_list: [{one.replace('T', '0')}, {one.replace('T', '1')}]\n"
    found = imported(tmp_path / "litellm.yaml", f"{text}\nrouter_settings: {{timeout: 5, num_retries: 0}}")
    assert found.config["models"]["a"]["defaults"] == {"temperature": 0}
    assert (found.config["timeouts"], found.config["retry"]) == ({"total": 5.0}, {"attempts": 1})
    assert found.omitted == ("model_list[1].litellm_params: other defaults than the first endpoint of a",)


@pytest.mark.parametrize(
    ("weight", "carried", "omitted"),
    [
        ("x", 1.0, ["model_list[0].litellm_params.weight: not a number"]),
        ("[2]", 1.0, ["model_list[0].litellm_params.weight: not a number"]),
        ("true", 1.0, ["model_list[0].litellm_params.weight: not a number"]),
        (".inf", 1.0, []),
        ("-1", 1.0, []),
        ("2", 2.0, []),
    ],
)
def test_a_weight_is_a_number(tmp_path: Path, weight: str, carried: float, omitted: list[str]) -> None:
    entry = "{model_name: a, litellm_params: {model: openai/x, weight: WEIGHT}}"
    text = f"model_list: [{entry.replace('WEIGHT', weight)}, {entry.replace('WEIGHT', '3')}]"
    result = imported(tmp_path / "litellm.yaml", text)
    assert [one["weight"] for one in result.config["models"]["a"]["endpoints"]] == [carried, 3.0]
    assert list(result.omitted) == omitted


def test_settings_of_another_shape_are_not_carried_over(tmp_path: Path) -> None:
    text = """
        model_list: [{model_name: a, litellm_params: {model: openai/x}}, 3]
        litellm_settings: {fallbacks: 7, callbacks: [{b: 1}, 5], success_callback: 8}
        router_settings: {fallbacks: [{a: [{model: c}]}, {a: 5}], model_group_alias: {z: [a]}}
    """
    result = imported(tmp_path / "litellm.yaml", text)
    assert [one["model"] for one in result.config["models"]["a"]["endpoints"]] == ["x"]
    assert len(result.omitted) == 7


@pytest.mark.parametrize("name", ["", "A-B"])
def test_a_variable_needs_a_name(tmp_path: Path, name: str) -> None:
    text = f"model_list: [{{model_name: a, litellm_params: {{model: openai/x, api_key: os.environ/{name}}}}}]"
    with pytest.raises(ConfigurationError, match="not the name of a variable"):
        imported(tmp_path / "litellm.yaml", text)


@pytest.mark.parametrize("key", ["sk-1234", "os.environ/NONE"])
def test_a_short_or_missing_key_is_not_carried_over(tmp_path: Path, key: str) -> None:
    found = imported(tmp_path / "litellm.yaml", f"model_list: []\ngeneral_settings: {{master_key: {key}}}")
    assert "keys" not in found.config
    assert found.omitted[0].startswith("general_settings.master_key: not set, or shorter than 24 characters")


@pytest.mark.parametrize("text", ["[", "models: {}", "model_list: {}", "7", "a: 2001-99-99"])
def test_another_file_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigurationError, match="not YAML|expected a mapping with `model_list`"):
        imported(tmp_path / "litellm.yaml", text)


def test_the_command_prints_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "litellm.yaml"
    path.write_text(FILE.replace("os.environ/MASTER", MASTER))
    assert main(["serve", "--import", str(path)]) == 0
    out, err = capsys.readouterr()
    assert yaml.safe_load(out)["listen"] == "127.0.0.1:4000"
    assert err == "".join(f"not carried over: {line}\n" for line in OMITTED.splitlines())
    assert main(["serve", "--import", str(tmp_path / "none.yaml")]) == 2
    assert "No such file" in capsys.readouterr().err


def test_models_that_stand_in_for_each_other_have_each_endpoint_once(tmp_path: Path) -> None:
    text = """
model_list:
  - {model_name: a, litellm_params: {model: openai/x, api_key: k, weight: 2}}
  - {model_name: b, litellm_params: {model: anthropic/y, api_key: k}}
litellm_settings: {fallbacks: [{a: [b]}]}
router_settings: {fallbacks: [{b: [a]}, {a: [b]}]}
"""
    models = yaml.safe_load(imported(tmp_path / "litellm.yaml", text).text())["models"]
    assert {name: [one["model"] for one in model["endpoints"]] for name, model in models.items()} == {
        "a": ["x", "y"],
        "b": ["y", "x"],
    }
