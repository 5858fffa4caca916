"""Test an application without a model."""

from __future__ import annotations

from pathlib import Path

import httpx2

from crosswalk import registry
from crosswalk.testing import Corpus, compare_answer, load_capture, load_captures, normalized
from crosswalk.testing.exchange import Cut, Delay, Stall
from crosswalk.testing.replay import Answer, ReplayServer


def check_the_client(folder: Path) -> None:
    capture = load_capture(folder / "chat.response.sse")
    with ReplayServer(load_captures(folder)) as server, httpx2.Client() as client:
        server.add(capture, Delay(0.1)).add(Answer.text("Hello."), Cut(after_events=1))
        server.add(Answer.failure(429, retry_after=2), when=lambda request: request.json()["model"] == "busy")
        server.add(Answer.of_json({"error": "no"}), Stall(), times=None)
        answer = client.post(f"{server.url}/v1/chat/completions", json={"model": "busy"})
        print(answer.status_code, [request.path for request in server.requests], server.disconnects)


corpus = Corpus.installed()
for recorded, canonical in corpus.load("xai"):
    problems = compare_answer(recorded, canonical, normalized(registry.mapper("xai"), recorded))
    print(recorded.case, [str(problem) for problem in problems])
