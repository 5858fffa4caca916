"""The metadata that a build computes: the README without relative links, and the project's URLs.

A package index cannot follow relative links. If ``CROSSWALK_REPOSITORY`` is the URL of the repository, such as
``https://github.com/OWNER/NAME``, they become absolute and the project gets its URLs. Otherwise only their text remains.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

RELATIVE_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?![a-z]+:|#)([^)\s]+)\)")


class PackageMetadata(MetadataHookInterface):
    """Sets ``readme`` and ``urls``, which pyproject.toml declares as dynamic."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the two fields to *metadata*."""
        repository = os.environ.get("CROSSWALK_REPOSITORY", "").rstrip("/")
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": long_description(text, repository)}
        metadata["urls"] = urls(repository)


def urls(repository: str) -> dict[str, str]:
    """Return the project's URLs, or none without a *repository*."""
    if not repository:
        return {}
    return {
        "Source": repository,
        "Documentation": f"{repository}/blob/main/docs/index.md",
        "Changelog": f"{repository}/blob/main/CHANGELOG.md",
        "Issues": f"{repository}/issues",
    }


def long_description(readme: str, repository: str) -> str:
    """Return *readme* with absolute links, or with their text if there is no *repository*."""

    def absolute(link: re.Match[str]) -> str:
        image, text, target = link.groups()
        if repository:
            return f"{image}[{text}]({repository}/{'raw' if image else 'blob'}/main/{target})"
        return "" if image else text

    return RELATIVE_LINK.sub(absolute, readme)
