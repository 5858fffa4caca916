from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from crosswalk.cli.parser import COMMANDS, parse

from .conftest import Done

Run = Callable[..., Done]


def completed(script: str, folder: Path, *words: str) -> list[str]:
    """The offers of bash for the last of *words*, with *script* sourced in *folder*."""
    (folder / "script.bash").write_text(script)
    asked = f"""
source ./script.bash
COMP_WORDS=({shlex.join(words)}) COMP_CWORD={len(words) - 1} COMPREPLY=()
$(complete -p crosswalk | sed 's/.*-F \\([^ ]*\\).*/\\1/')
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    done = subprocess.run(
        ["bash", "--norc", "-c", asked],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ},
    )
    return done.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_bash_completes_commands_options_words_files_and_providers(run: Run, tmp_path: Path) -> None:
    script = run("completion", "bash").out
    (tmp_path / "answer.json").write_text("{}")
    assert completed(script, tmp_path, "crosswalk", "norm") == ["normalize"]
    assert completed(script, tmp_path, "crosswalk", "normalize", "--prov") == ["--provider"]
    assert completed(script, tmp_path, "crosswalk", "normalize", "--provider", "olla") == ["ollama"]
    assert completed(script, tmp_path, "crosswalk", "table", "ollama", "--format", "ht") == ["html"]
    assert completed(script, tmp_path, "crosswalk", "explain", "ans") == ["answer.json"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "tcsh"])
def test_each_shell_has_a_script(run: Run, shell: str) -> None:
    done = run("completion", shell)
    assert (done.status, done.err) == (0, "")
    for word in ("normalize", "new-plugin", "base-url", "mistral"):
        assert word in done.out


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_each_command_ends_with_examples_that_can_be_said(run: Run, command: str) -> None:
    shown = run(command, "--help").out.splitlines()
    said = set()
    for example in shown[shown.index("Examples:") + 1 :]:
        ours = example[example.index("crosswalk ") :]
        words = shlex.split(re.split(" [<>|] ", ours)[0])  # the rest is the shell's
        said.add(parse(words[1:]).command)
    assert command in said
