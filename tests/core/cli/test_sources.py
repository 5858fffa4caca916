from __future__ import annotations

from pathlib import Path

import pytest

import crosswalk.testing
from crosswalk.errors import ConfigurationError
from crosswalk.testing import capture_files


def test_only_a_folder_has_files(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no folder of captures"):
        list(capture_files(tmp_path / "nowhere"))


def test_the_kit_gives_what_it_has_and_nothing_else() -> None:
    assert crosswalk.testing.ProviderConformance.__name__ == "ProviderConformance"
    with pytest.raises(AttributeError, match="has no attribute 'Conformance'"):
        _ = crosswalk.testing.Conformance
