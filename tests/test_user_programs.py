"""Programs as users write them, read by the type checker of their editor: it knows each type, and finds nothing wrong."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pages import ROOT

PROGRAMS = ROOT / "tests/user_programs"
PYRIGHT = shutil.which(
    "pyright", path=os.pathsep.join([str(ROOT / "tests/clients/node_modules/.bin"), os.environ["PATH"]])
)


@pytest.mark.sweep  # another type checker reads the library; mypy reads the programs in every check
@pytest.mark.skipif(PYRIGHT is None, reason="pyright is not installed: npm install --prefix tests/clients")
def test_pyright_knows_each_type(tmp_path: Path) -> None:
    shutil.copytree(PROGRAMS, tmp_path / "programs")
    environment = Path(sys.prefix)
    config = {
        "typeCheckingMode": "strict",
        "include": ["programs"],
        "venvPath": str(environment.parent),
        "venv": environment.name,
        "pythonVersion": "3.11",
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(config))
    assert PYRIGHT is not None
    done = subprocess.run(
        [PYRIGHT, "--outputjson"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    report = json.loads(done.stdout)
    assert report["summary"]["filesAnalyzed"] == len(list(PROGRAMS.glob("*.py"))) == 15
    assert [
        f"{Path(one['file']).name}:{one['range']['start']['line'] + 1}: {one['message']}"
        for one in report["generalDiagnostics"]
    ] == []
