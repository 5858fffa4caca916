"""The cost of a gateway: the same upstream called directly, through ``crosswalk serve``, and through LiteLLM's proxy.

The upstream and each gateway are separate processes on this machine. A gateway's cost is the CPU time of its processes
(read from ``/proc``, so this part needs Linux) while the requests run. The latency that it adds is the difference of
the medians, and of the 99th percentiles, of sequential requests through it and past it. The memory of its processes is read
after the last request. LiteLLM takes part if its command is found on the path, or at the path in the variable ``LITELLM``.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import attrs
import httpx2

from benchmarks.local_server import Served, running
from benchmarks.measure import Above, print_table
from benchmarks.service import PATHS, body_of, events_of

EVENTS = 500
BODIES = 40
"""The number of bodies that are requested in a round."""
STREAMS = 3
BAR = 10.0
"""The CPU of LiteLLM's proxy, in times ours."""
_TICKS = os.sysconf("SC_CLK_TCK")
_PATIENCE = 120.0
_MESSAGES = [{"role": "user", "content": "hello"}]
_ASKED = {
    "vllm": {"model": "chat", "messages": _MESSAGES},
    "anthropic": {"model": "chat", "messages": _MESSAGES, "max_tokens": 100},
}


@attrs.frozen
class Row:
    """One kind of request.

    Attributes:
        title: its title in the table.
        form: the wire format of the client.
        is_stream: whether it asks for a stream, with a fixed number of events.
        count: the number of requests in a round.
    """

    title: str
    form: str
    is_stream: bool
    count: int

    @property
    def units(self) -> int:
        """The divisor of the cost: the number of requests, or of events."""
        return self.count * EVENTS if self.is_stream else self.count


ROWS = (
    Row("a body of 0.5 KB, a request", "vllm", False, BODIES),
    Row("a stream, an event", "vllm", True, STREAMS),
    Row("the same in Anthropic's form: a body, a request", "anthropic", False, BODIES),
    Row("the same in Anthropic's form: a stream, an event", "anthropic", True, STREAMS),
)


@attrs.frozen
class Gateway:
    """A gateway that runs.

    Attributes:
        url: its address.
        process: its first process.
    """

    url: str
    process: int

    def seconds(self) -> float:
        """The CPU time that it and its processes have taken."""
        return sum(map(_seconds, _family(self.process)))

    def megabytes(self) -> float:
        """The memory of it and its processes."""
        return sum(map(_resident, _family(self.process))) / 2**20


def _family(process: int) -> Iterator[int]:
    yield process
    for children in Path(f"/proc/{process}/task").glob("*/children"):
        for child in children.read_text().split():
            yield from _family(int(child))


def _seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _resident(process: int) -> int:
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


@contextmanager
def _gateway(command: list[str], port: int, healthy: str) -> Iterator[Gateway]:
    """Yield the gateway that *command* starts, once *healthy* answers."""
    url = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, stdout=said, stderr=said)
        try:
            until = time.monotonic() + _PATIENCE
            while not _answers(url + healthy):
                if process.poll() is not None or time.monotonic() > until:
                    said.seek(0)
                    sys.exit(f"{command[0]} does not start:\n{said.read().decode()[-2000:]}")
                time.sleep(0.2)
            yield Gateway(url, process.pid)
        finally:
            process.terminate()
            process.wait()


def _answers(url: str) -> bool:
    try:
        return httpx2.get(url, timeout=5).status_code == 200
    except httpx2.HTTPError:
        return False


@contextmanager
def _crosswalk(upstream: str, folder: Path) -> Iterator[Gateway]:
    port = _free_port()
    config = folder / "crosswalk.yaml"
    target = {"provider": "vllm", "model": "tiny", "base_url": f"{upstream}/NAME"}
    models = {
        name: {**target, "base_url": target["base_url"].replace("NAME", name)} for name in ("whole", "stream")
    }
    config.write_text(json.dumps({"models": models}))  # JSON is YAML
    command = [sys.executable, "-m", "crosswalk", "serve", str(config), "--port", str(port)]
    with _gateway(command, port, "/healthz") as gateway:
        yield gateway


@contextmanager
def _litellm(litellm: str, upstream: str, folder: Path) -> Iterator[Gateway]:
    port = _free_port()
    config = folder / "litellm.yaml"
    models = [
        {
            "model_name": name,
            "litellm_params": {
                "model": "hosted_vllm/tiny",
                "api_base": f"{upstream}/{name}/v1",
                "api_key": "none",
            },
        }
        for name in ("whole", "stream")
    ]
    settings = {"dangerously_permit_weak_or_unset_master_key": True}  # neither gateway requires a key
    config.write_text(json.dumps({"model_list": models, "general_settings": settings}))
    command = [litellm, "--config", str(config), "--port", str(port), "--host", "127.0.0.1"]
    with _gateway(command, port, "/health/liveliness") as gateway:
        yield gateway


def _request(client: httpx2.Client, url: str, row: Row) -> float:
    """Return the seconds of one request, which must be answered in full."""
    name = "stream" if row.is_stream else "whole"
    asked = {**_ASKED[row.form], "model": name, "stream": row.is_stream}
    started = time.perf_counter()
    answer = client.post(url + PATHS[row.form], json=asked)
    taken = time.perf_counter() - started
    end = {"vllm": b"[DONE]", "anthropic": b"message_stop"}[row.form] if row.is_stream else b"lazy dog"
    if answer.status_code != 200 or end not in answer.content:
        sys.exit(f"{url}: HTTP {answer.status_code}: {answer.text[:500]}")
    return taken


def _percentile(times: list[float], share: float) -> float:
    return sorted(times)[min(len(times) - 1, int(len(times) * share))]


def main(rounds: int) -> list[Above]:
    """Measure and print. Return the rows above their bar."""
    served = {
        "whole": Served([body_of("vllm", 500)], "application/json"),
        "stream": Served(events_of("vllm", EVENTS), "text/event-stream"),
    }
    litellm = os.environ.get("LITELLM") or shutil.which("litellm")
    with ExitStack() as stack:
        upstream = stack.enter_context(running(served))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        client = stack.enter_context(httpx2.Client(timeout=_PATIENCE, verify=False))
        gateways = {"crosswalk serve": stack.enter_context(_crosswalk(upstream, folder))}
        if litellm:
            gateways["LiteLLM"] = stack.enter_context(_litellm(litellm, upstream, folder))
        return _measured(client, upstream, gateways, rounds)


def _measured(client: httpx2.Client, upstream: str, gateways: dict[str, Gateway], rounds: int) -> list[Above]:
    rows: list[tuple[str, ...]] = []
    above: list[Above] = []
    for row in ROWS:
        # Without a gateway the upstream is called in its own format, the only one that it supports.
        name = "stream" if row.is_stream else "whole"
        direct = attrs.evolve(row, form="vllm")
        cost: dict[str, float] = dict.fromkeys(gateways, 0.0)
        times: dict[str, list[float]] = {"": [], **{name: [] for name in gateways}}
        for number in range(rounds + 1):  # the first one warms up
            taken = [_request(client, f"{upstream}/{name}", direct) for _ in range(row.count)]
            times[""] += taken if number else []
            for who, gateway in gateways.items():
                before = gateway.seconds()
                taken = [_request(client, gateway.url, row) for _ in range(row.count)]
                if number:
                    cost[who] += gateway.seconds() - before
                    times[who] += taken
        cells = [row.title]
        for who in gateways:
            cells.append(f"{cost[who] / rounds / row.units * 1e6:.0f}")
            cells += [
                f"{(_percentile(times[who], share) - _percentile(times[''], share)) * 1e3:.1f}"
                for share in (0.5, 0.99)
            ]
        if len(gateways) > 1:
            times_less = cost["LiteLLM"] / (cost["crosswalk serve"] or 1 / _TICKS)
            cells.append(f"{times_less:.1f}")
            if times_less < BAR:
                above.append(Above(row.title, 1 / times_less, 1 / BAR))
        rows.append(tuple(cells))
    header: list[str] = ["gateway, one request after the other"]
    for who in gateways:
        header += [f"{who} us CPU", "p50 +ms", "p99 +ms"]
    header += ["times less"] if len(gateways) > 1 else []
    print_table("gateway", tuple(header), rows)
    memory = {who: gateway.megabytes() for who, gateway in gateways.items()}
    print_table(
        "memory", ("after these requests, MB", *memory), [("", *(f"{mb:.0f}" for mb in memory.values()))]
    )
    return above
