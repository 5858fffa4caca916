"""Turns the configuration of LiteLLM's proxy into the gateway's, and lists the settings that have no counterpart."""

from __future__ import annotations

import math
import os
import re
import secrets
import tomllib
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import attrs
import yaml

from crosswalk.errors import ConfigurationError
from crosswalk_serve.config import KeyHash
from crosswalk_serve.routing import SHORTEST

_SAME_NAMES: Final = (
    *("openai", "anthropic", "gemini", "bedrock", "cohere", "ollama", "vllm", "groq", "mistral", "xai"),
    *("deepseek", "openrouter", "perplexity", "dashscope", "moonshot", "zai", "minimax", "cloudflare"),
)
_PROVIDERS: Final = {
    **dict(zip(_SAME_NAMES, _SAME_NAMES, strict=True)),
    "azure": "openai",
    "cohere_chat": "cohere",
    "fireworks_ai": "fireworks",
    "hosted_vllm": "vllm",
    "huggingface": "tgi",
    "llamafile": "llamacpp",
    "lm_studio": "lmstudio",
    "ollama_chat": "ollama",
    "together_ai": "together",
}
"""The provider by LiteLLM's prefix of a model."""
_VENDORS_FILE: Final = "litellm_names.toml"
"""The file with the vendor by the beginning of a model's name. LiteLLM's own names need no prefix."""
_DEFAULT_OPTIONS: Final = (
    "temperature",
    "max_tokens",
    "top_p",
    "seed",
    "frequency_penalty",
    "presence_penalty",
)
_COST_KEYS: Final = ("input_cost_per_token", "output_cost_per_token")
_ENVIRONMENT_PREFIX: Final = "os.environ/"
_NAME: Final = re.compile(r"\w+")
_CALLBACKS: Final = {"prometheus": "metrics", "otel": "tracing"}


@attrs.frozen
class Imported:
    """The result.

    Attributes:
        config: the gateway's configuration, as plain YAML.
        omitted: the settings that were not carried over, each with its path and the reason.
    """

    config: dict[str, Any]
    omitted: tuple[str, ...]

    def text(self) -> str:
        """Return the configuration as YAML."""
        return yaml.safe_dump(self.config, sort_keys=False, allow_unicode=True)


def import_litellm(path: Path | str, environ: Mapping[str, str] | None = None) -> Imported:
    """Read LiteLLM's configuration from the file *path*.

    Args:
        path: the file.
        environ: the environment for a master key that is a variable, or ``None`` for the process's own.

    Raises:
        ConfigurationError: the file cannot be read, or is not such a configuration.
    """
    try:
        document = yaml.safe_load(Path(path).read_bytes())
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror}", source=str(path)) from None
    except (yaml.YAMLError, ValueError, RecursionError):
        raise ConfigurationError(f"{path}: not YAML", source=str(path)) from None
    if not (isinstance(document, dict) and isinstance(document.get("model_list"), list)):
        raise ConfigurationError(f"{path}: expected a mapping with `model_list`", source=str(path))
    return _Import(os.environ if environ is None else environ).of(document)


class _Import:
    """The import of one file. Each method takes the settings that it knows out of their mapping."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._omitted: list[str] = []
        self._models: dict[str, dict[str, Any]] = {}

    def of(self, document: dict[str, Any]) -> Imported:
        for number, entry in enumerate(document.pop("model_list")):
            self._add(f"model_list[{number}]", entry if isinstance(entry, dict) else {})
        settings, router, general = (
            _mapping(document.pop(name, None))
            for name in ("litellm_settings", "router_settings", "general_settings")
        )
        self._weigh(router.pop("routing_strategy", "simple-shuffle"))
        for section_name, section in (("litellm_settings", settings), ("router_settings", router)):
            self._fall_back(section_name, section)
        self._name(_mapping(router.pop("model_group_alias", None)))
        config: dict[str, Any] = {"models": self._models, **self._options(settings, router)}
        config |= self._keys(general.pop("master_key", None))
        config["listen"] = "127.0.0.1:4000"
        for section_name, section in (
            ("litellm_settings", settings),
            ("router_settings", router),
            ("general_settings", general),
        ):
            self._rest(section_name, section)
        self._rest("", document)
        for model in self._models.values():
            weighted_targets = [target for target in model["endpoints"] if "weight" in target]
            if len(weighted_targets) == 1:
                del weighted_targets[0]["weight"]
        return Imported(config, tuple(self._omitted))

    # Models.

    def _add(self, place: str, entry: dict[str, Any]) -> None:
        """Add the deployment *entry* to its model."""
        name, parameters = str(entry.pop("model_name", "")), dict(_mapping(entry.pop("litellm_params", None)))
        target = self._target(place, name, parameters)
        if target is None:
            return
        model_info = dict(_mapping(entry.pop("model_info", None)))
        model = self._models.setdefault(name, {"endpoints": []})
        model_settings: dict[str, dict[str, Any]] = {
            "defaults": {key: parameters.pop(key) for key in _DEFAULT_OPTIONS if key in parameters}
        }
        costs: list[Any] = [{**model_info, **parameters}.get(key) for key in _COST_KEYS]
        for key in _COST_KEYS:
            model_info.pop(key, None)
            parameters.pop(key, None)
        if all(type(cost) in (int, float) for cost in costs):
            model_settings["price"] = {
                f"{kind}_per_million": round(cost * 1e6, 6)
                for kind, cost in zip(("input", "output"), costs, strict=True)
            }
        if type(parameters.get("timeout")) in (int, float):
            model_settings["timeouts"] = {"total": float(parameters.pop("timeout"))}
        for key, value in model_settings.items():
            if value and not model["endpoints"]:
                model[key] = value
            elif value and model.get(key) != value:
                self._omit(f"{place}.litellm_params", f"other {key} than the first endpoint of {name}")
        model["endpoints"].append(target)
        self._rest(f"{place}.litellm_params", parameters)
        self._rest(f"{place}.model_info", model_info)
        self._rest(place, entry)

    def _target(self, place: str, name: str, parameters: dict[str, Any]) -> dict[str, Any] | None:
        """Return the endpoint of a deployment, or ``None`` if the gateway has no such provider."""
        full_name = str(parameters.pop("model", ""))
        prefix, slash, model = full_name.partition("/")
        if "custom_llm_provider" in parameters:
            prefix, model = str(parameters.pop("custom_llm_provider")), full_name.removeprefix(f"{prefix}/")
        elif not slash:
            model = full_name
            prefix = next((vendor for start, vendor in _vendors() if full_name.startswith(start)), full_name)
        provider = _PROVIDERS.get(prefix)
        if provider is None or not name:
            self._omit(place, f"no provider for {full_name!r}" if name else "no model_name")
            return None
        model = model.removeprefix("converse/")
        if provider == "openai" and model.startswith("responses/"):
            provider, model = "openai_responses", model.removeprefix("responses/")
        target: dict[str, Any] = {"provider": provider}
        if not model.endswith("*"):
            target["model"] = model
        elif model != name:
            self._omit(place, f"the client's name {name!r} would become {model!r}")
            return None
        base_url = parameters.pop("api_base", parameters.pop("base_url", None))
        if base_url is not None:
            base_url = _text(base_url)
            target["base_url"] = f"{base_url.rstrip('/')}/openai/v1" if prefix == "azure" else base_url
        key = parameters.pop("api_key", f"{_ENVIRONMENT_PREFIX}AZURE_API_KEY" if prefix == "azure" else None)
        if key is not None:  # Azure must not get the key of OpenAI
            target["api_key"] = _text(key)
        headers = {
            key: _text(value) for key, value in _mapping(parameters.pop("extra_headers", None)).items()
        }
        if "organization" in parameters:
            headers["OpenAI-Organization"] = _text(parameters.pop("organization"))
        if headers:
            target["headers"] = headers
        weights = {key: parameters.pop(key, None) for key in ("weight", "rpm", "tpm")}
        usable = (one for one in weights.values() if type(one) in (int, float) and 0 < one < math.inf)
        target["weight"] = float(next(usable, 1))
        for key, value in weights.items():
            if value and type(value) not in (int, float):
                self._omit(f"{place}.litellm_params.{key}", "not a number")
            elif value and key != "weight":
                self._omit(f"{place}.litellm_params.{key}", "endpoints have weights, but no limits")
        return target

    def _weigh(self, strategy: object) -> None:
        if strategy != "simple-shuffle" and any(
            len(model["endpoints"]) > 1 for model in self._models.values()
        ):
            self._omit("router_settings.routing_strategy", f"{strategy!r}; endpoints are chosen by weight")

    def _fall_back(self, place: str, section: dict[str, Any]) -> None:
        """Append the endpoints of the fallbacks to those of their models."""
        targets_by_model = {name: list(model["endpoints"]) for name, model in self._models.items()}
        for entry in _items(section.pop("fallbacks", None)):
            for name, fallback_names in _mapping(entry).items():
                if name not in targets_by_model:
                    self._omit(f"{place}.fallbacks", f"no model {name!r}")
                    continue
                for fallback_name in map(str, _items(fallback_names)):
                    if fallback_name not in targets_by_model:
                        self._omit(f"{place}.fallbacks", f"no model {fallback_name!r}")
                    for target in targets_by_model.get(fallback_name, ()):
                        fallback_target = _unweighted(fallback_name, target)
                        endpoints = self._models[name]["endpoints"]
                        if fallback_target not in [_unweighted(name, one) for one in endpoints]:
                            endpoints.append(fallback_target)

    def _name(self, aliases: Mapping[str, Any]) -> None:
        for alias, target in aliases.items():
            name = str(_mapping(target).get("model", target))
            if name in self._models:
                self._models[name].setdefault("aliases", []).append(alias)
            else:
                self._omit("router_settings.model_group_alias", f"no model {name!r}")

    # The rest of the file.

    def _options(self, settings: dict[str, Any], router: dict[str, Any]) -> dict[str, Any]:
        options: dict[str, Any] = {}
        if settings.pop("drop_params", False):
            options["on_unsupported"] = "drop"
        retry: dict[str, float] = {}
        retry_counts = [section.pop("num_retries", None) for section in (settings, router)]
        count = next((one for one in reversed(retry_counts) if type(one) is int), None)
        if count is not None:
            retry["attempts"] = count + 1
        if type(router.get("cooldown_time")) in (int, float):
            retry["cool_down_seconds"] = float(router.pop("cooldown_time"))
        if retry:
            options["retry"] = retry
        timeouts = [settings.pop("request_timeout", None), router.pop("timeout", None)]
        seconds = next((one for one in reversed(timeouts) if type(one) in (int, float)), None)
        if seconds is not None:
            options["timeouts"] = {"total": float(seconds)}
        for setting in ("callbacks", "success_callback", "failure_callback"):
            for callback in map(str, _items(settings.pop(setting, None))):
                if callback in _CALLBACKS:
                    options[_CALLBACKS[callback]] = True
                else:
                    self._omit(f"litellm_settings.{setting}", f"{callback!r}")
        return options

    def _keys(self, master_key: object) -> dict[str, Any]:
        """Return the section of keys for the master key. The keys in LiteLLM's database are not in the file."""
        if master_key is None:
            return {}
        setting, key = "general_settings.master_key", str(master_key)
        if key.startswith(_ENVIRONMENT_PREFIX):
            key = self._environ.get(key.removeprefix(_ENVIRONMENT_PREFIX), "")
        if len(key) < SHORTEST:
            self._omit(setting, f"not set, or shorter than {SHORTEST} characters; `--new-key` makes a key")
            return {}
        return {"keys": {"master": {"hash": str(KeyHash.of(key, secrets.token_bytes(16))), "metrics": True}}}

    def _rest(self, place: str, section: Mapping[str, Any]) -> None:
        for name, value in section.items():
            if value not in (None, {}, []):
                self._omit(f"{place}.{name}".removeprefix("."), "no counterpart")

    def _omit(self, place: str, why: str) -> None:
        self._omitted.append(f"{place}: {why}")


def _unweighted(name: str, target: Mapping[str, Any]) -> dict[str, Any]:
    """Return *target*, an endpoint of the model *name*, as it is behind others."""
    return {"model": name, **{key: value for key, value in target.items() if key != "weight"}}


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _items(value: object) -> list[Any]:
    """Return the list *value*, or a list of one *value*, or an empty one for ``None``."""
    return value if isinstance(value, list) else [] if value is None else [value]


def _text(value: object) -> str:
    """Return *value* as a text of the gateway's file, with ``${NAME}`` for a variable of the environment.

    Raises:
        ConfigurationError: that has no name, or one that the gateway's file cannot say.
    """
    text = str(value)
    if not text.startswith(_ENVIRONMENT_PREFIX):
        return text
    name = text.removeprefix(_ENVIRONMENT_PREFIX)
    if not _NAME.fullmatch(name):
        raise ConfigurationError(f"{_ENVIRONMENT_PREFIX}{name}: not the name of a variable")
    return f"${{{name}}}"


def _vendors() -> Iterable[tuple[str, str]]:
    content = files("crosswalk_serve").joinpath(_VENDORS_FILE).read_text("utf-8")
    return tomllib.loads(content).items()
