"""The annotation berth.dev/spread."""

from __future__ import annotations

import pytest

from berth.api.spread import SpreadLevel, read_spread, spread_problem


@pytest.mark.parametrize("level", list(SpreadLevel))
def test_every_level_is_read(level: SpreadLevel) -> None:
    annotations = {"berth.dev/spread": str(level), "other": "zone"}
    assert read_spread(annotations) is level
    assert spread_problem(annotations) is None


def test_without_the_annotation_nothing_is_stated() -> None:
    assert (read_spread({"other": "zone"}), spread_problem({})) == (None, None)


@pytest.mark.parametrize("text", ["", "Zone", "region", "node,zone"])
def test_what_cannot_be_read_says_nothing_and_is_told(text: str) -> None:
    annotations = {"berth.dev/spread": text}
    assert read_spread(annotations) is None
    assert str(spread_problem(annotations)) == (
        f'metadata.annotations.berth.dev/spread: "{text}" is no such failure; the spread of the profile is used; '
        "write one of soft, none, node, zone"
    )


def test_a_long_text_is_not_repeated_in_full() -> None:
    problem = spread_problem({"berth.dev/spread": "x" * 200_000})
    assert problem is not None
    assert len(str(problem)) < 300
    assert str(problem).endswith("write one of soft, none, node, zone")
