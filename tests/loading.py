"""The modules that a program loads."""

from __future__ import annotations

import json
import subprocess
import sys


def loaded_by(program: str) -> set[str]:
    """The modules that *program* loads in a fresh interpreter, beyond those that are there anyway."""
    asked = f"import sys; before = set(sys.modules)\n{program}\nimport json; print(json.dumps([*set(sys.modules) - before]))"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))
