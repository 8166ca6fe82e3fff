"""Settings models as command line options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field, FilePath, ValidationError, field_validator

from berth.runtime.component import available_components, load_component
from berth.runtime.settings import (
    ComponentSettings,
    Flag,
    Option,
    RunSettings,
    SettingsError,
    options_of,
    settings_from,
)


class Engine(ComponentSettings):
    """Settings of an engine."""

    max_speed: Annotated[float, Field(gt=0)] = 1.5
    """Fastest, in m/s."""
    gears: Annotated[int | None, Flag("--gears")] = None
    """How many."""
    fuel: Literal["coal", "oil"] = "coal"
    """What it burns."""
    manual: FilePath | None = None
    """How to drive it."""
    log: Path = Path("engine.log")
    """Where it writes."""
    whistle: bool = True
    """Whether it is heard."""
    name: str = ""
    """What it is called."""

    @field_validator("name")
    @classmethod
    def _short(cls, name: str) -> str:
        if len(name) > 3:
            raise ValueError("Names have at most 3 letters")
        return name


@pytest.mark.parametrize(
    "option",
    [
        Option("max_speed", "--engine-max-speed", "NUMBER", "1.5", "Fastest, in m/s."),
        Option("gears", "--gears", "NUMBER", "", "How many."),
        Option("fuel", "--engine-fuel", "coal|oil", "coal", "What it burns."),
        Option("manual", "--engine-manual", "FILE", "", "How to drive it."),
        Option("log", "--engine-log", "FILE", "engine.log", "Where it writes."),
        Option("whistle", "--engine-whistle", "", "on", "Whether it is heard."),
        Option("name", "--engine-name", "TEXT", "", "What it is called."),
    ],
    ids=lambda option: option.field,
)
def test_the_option_of_a_field(option: Option) -> None:
    assert option in options_of(Engine, "engine")


def test_the_options_of_the_process_have_no_prefix() -> None:
    assert [option.flag for option in options_of(RunSettings)][:3] == ["--kubeconfig", "--context", "--leader-elect"]


def test_a_component_has_no_options_of_its_own_by_default() -> None:
    assert options_of(ComponentSettings, "engine") == []


def test_values_are_read_and_other_flags_left_alone(tmp_path: Path) -> None:
    manual = tmp_path / "manual"
    manual.touch()
    given = {"--gears": "4", "--engine-manual": str(manual), "--engine-whistle": False, "--boat-gears": "9"}
    assert settings_from(Engine, "engine", given) == Engine(gears=4, manual=manual, whistle=False)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"--engine-max-speed": "0"}, "--engine-max-speed '0': input should be greater than 0"),
        ({"--gears": "many"}, "--gears 'many': input should be a valid integer, "),
        ({"--engine-fuel": "tea"}, "--engine-fuel 'tea': input should be 'coal' or 'oil'"),
        ({"--engine-manual": "/nowhere"}, "--engine-manual '/nowhere': path does not point to a file"),
        ({"--engine-manual": "/"}, "--engine-manual '/': path does not point to a file"),
        ({"--engine-name": "Rocket"}, "--engine-name 'Rocket': names have at most 3 letters"),
    ],
    ids=["bound", "number", "choice", "no such file", "directory", "the model's own rule"],
)
def test_a_wrong_value_names_the_option_and_what_is_accepted(given: dict[str, Any], text: str) -> None:
    with pytest.raises(SettingsError) as caught:
        settings_from(Engine, "engine", given)
    assert str(caught.value).startswith(text)


@pytest.mark.parametrize(
    ("field", "value"),
    [("lease_duration", 0.9), ("lease_duration", 3601), ("health_port", -1), ("health_port", 65536), ("lease", 5)],
)
def test_bounds_of_the_process(field: str, value: float) -> None:
    with pytest.raises(ValidationError):
        RunSettings.model_validate({field: value})


@pytest.mark.parametrize("namespace", ["", "A B", "-a", "a/b", "a" * 64])
def test_a_lease_needs_the_name_of_a_namespace(namespace: str) -> None:
    with pytest.raises(SettingsError, match=r"^--lease-namespace '.*': no name of a namespace, "):
        settings_from(RunSettings, "", {"--lease-namespace": namespace})


@pytest.mark.parametrize("namespace", ["a", "berth-system", "0", "a" * 63])
def test_a_lease_may_be_in_any_namespace(namespace: str) -> None:
    assert settings_from(RunSettings, "", {"--lease-namespace": namespace}).lease_namespace == namespace


def test_every_setting_is_described_and_every_flag_belongs_to_one() -> None:
    options = options_of(RunSettings)
    for name in available_components():
        options += options_of(load_component(name).Settings, name)
    assert [option.flag for option in options if not option.description.endswith(".")] == []
    assert len({option.flag for option in options}) == len(options)
