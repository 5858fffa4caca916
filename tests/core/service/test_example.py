"""The example asks a server and says how it went."""

from __future__ import annotations

import subprocess
import sys

from pages import ROOT, environment


def test_the_example_survives_a_failing_server() -> None:
    program = [sys.executable, str(ROOT / "examples/ask_a_server.py")]
    done = subprocess.run(program, env=environment(), capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert done.stdout.count("The answer is forty-two!") == 2
    assert "vllm/tiny: error the replay server is set to fail" in done.stdout
    assert done.stdout.endswith("RateLimitError after 2 attempts\n")
