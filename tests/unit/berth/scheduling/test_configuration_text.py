"""The text of a configuration file: what is no YAML is told in one line, with its place and the remedy."""

from __future__ import annotations

import pytest

from berth.scheduling.configuration import ConfigurationError, PlacementConfiguration
from berth.scheduling.configuration_text import configuration_of


@pytest.mark.parametrize(
    ("text", "place"),
    [
        pytest.param("profiles: [", "conf.yaml:1: not valid YAML", id="a list without end"),
        pytest.param("profiles:\n- a: b: c\n", "conf.yaml:2: not valid YAML", id="two colons"),
        pytest.param("profiles: \x01\n", "conf.yaml: not valid YAML", id="a character that YAML does not have"),
    ],
)
def test_what_is_no_yaml_is_told_in_one_line(text: str, place: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        configuration_of(text, source="conf.yaml")
    assert str(caught.value).startswith(place)
    assert str(caught.value).endswith("; correct the syntax")
    assert "\n" not in str(caught.value)


def test_nothing_gives_the_defaults() -> None:
    assert configuration_of("", source="conf.yaml") == PlacementConfiguration()
