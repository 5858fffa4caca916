"""The files in ``examples/serve`` are what they say."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from crosswalk_serve.config import KeyHash, read_config
from crosswalk_serve.gateway import Gateway

FOLDER = Path(__file__).parents[3] / "examples/serve"
ENVIRON = {
    "OLLAMA_URL": "http://ollama:11434",
    "REDIS_URL": "redis://redis",
    "TEAM_KEY_HASH": str(KeyHash.of("a key", b"saltsalt")),
    "PROMETHEUS_KEY_HASH": str(KeyHash.of("another key", b"saltsalt")),
}


def in_kubernetes() -> str:
    config, *_ = yaml.safe_load_all((FOLDER / "kubernetes.yml").read_text())
    return str(config["data"]["gateway.yml"])


@pytest.mark.parametrize(
    "text", [(FOLDER / "gateway.yml").read_text(), in_kubernetes()], ids=["compose", "kubernetes"]
)
def test_a_gateways_file_can_be_served(text: str) -> None:
    gateway = Gateway(read_config(text, environ=ENVIRON))
    assert gateway.router.names == ("llama3.2",)


def test_compose_gives_what_the_file_wants_and_mounts_what_there_is() -> None:
    compose = yaml.safe_load((FOLDER / "compose.yml").read_text())
    assert set(compose["services"]["gateway"]["environment"]) == set(ENVIRON)
    mounted = [mount for service in compose["services"].values() for mount in service.get("volumes", ())]
    files = {mount.split(":")[0] for mount in mounted if mount.startswith("./")} - {"./prometheus.key"}
    assert all((FOLDER / file).is_file() for file in files)


def test_the_dashboard_asks_for_numbers_that_there_are() -> None:
    names = set(re.findall(r"crosswalk_serve_\w+", (FOLDER / "grafana/dashboard.json").read_text()))
    told = read_config("models: {a: {provider: ollama}}\nmetrics: true")
    metrics = Gateway(told).metrics
    assert metrics is not None
    text = metrics.text()[0].decode()
    assert json.loads((FOLDER / "grafana/dashboard.json").read_text())["panels"]
    for name in names:
        assert re.search(rf"# TYPE {re.sub('_(bucket|count|sum)$', '', name)} ", text), name


def test_every_other_file_of_yaml_can_be_read() -> None:
    for file in FOLDER.rglob("*.yml"):
        assert list(yaml.safe_load_all(file.read_text())), file
