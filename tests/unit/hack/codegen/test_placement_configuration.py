"""The reference page of the placement controller's configuration."""

from __future__ import annotations

from hack.codegen.placement_configuration import models, page


def test_it_has_every_field_of_every_model() -> None:
    text = page()
    assert {model.__name__ for model in models()} == {
        "PlacementConfiguration", "Profile", "GangSettings", "ObjectiveWeights", "TopologyReference", "Link",
        "PodTopologySpreadSettings", "DefaultConstraint", "BandwidthRisk",
    }  # fmt: skip
    for model in models():
        for field in model.model_fields.values():
            assert f"| `{field.alias}` |" in text
            assert field.description
