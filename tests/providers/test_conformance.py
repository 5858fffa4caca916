"""The shipped providers run the same kit as a stranger's, over the project's own captures."""

from __future__ import annotations

from crosswalk.testing import ProviderConformance


class TestOllama(ProviderConformance):
    provider = "ollama"
    captures = "../captures/ollama"
    snapshots = "../../snapshots"


class TestVLLM(ProviderConformance):
    provider = "vllm"
    captures = "../captures/vllm"
    snapshots = "../../snapshots"
