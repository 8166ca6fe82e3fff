"""The placement controller's parts, put together but not run."""

from __future__ import annotations

from pathlib import Path

import pytest

from berth.scheduling.configuration import ConfigurationError, PlacementConfiguration
from controllers.placement.controller import load_configuration
from tests.support.desk import Desk


def test_every_kind_that_placement_reads_is_watched(desk: Desk) -> None:
    assert set(desk.controller.watches) == {
        "nodes", "namespaces", "pods", "services", "appgroups", "networktopologies",
        "persistentvolumes", "persistentvolumeclaims",
        "storageclasses", "csinodes", "csidrivers", "csistoragecapacities", "volumeattachments",
    }  # fmt: skip


class TestConfiguration:
    def test_default(self) -> None:
        assert load_configuration(None) == PlacementConfiguration()

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            pytest.param("profiles: [", "not valid YAML", id="no-yaml"),
            pytest.param("profilez: []", "profilez", id="unknown-field"),
        ],
    )
    def test_problems_name_the_file(self, tmp_path: Path, text: str, problem: str) -> None:
        path = tmp_path / "placement.yaml"
        path.write_text(text)
        with pytest.raises(ConfigurationError, match=problem) as raised:
            load_configuration(path)
        assert str(path) in str(raised.value)
