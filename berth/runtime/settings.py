"""Settings of a process and of its components: pydantic models whose fields are the options of ``berth run``.

A field's docstring is its documentation, in ``--help`` and in docs/reference/running.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, ClassVar, Literal, TypeVar, get_args, get_origin

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo


def _namespace_name(text: str) -> str:
    if not re.fullmatch("[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", text):
        raise ValueError("no name of a namespace, which has up to 63 lower-case letters, digits and '-'")
    return text


NamespaceName = Annotated[str, AfterValidator(_namespace_name)]
"""A name that a namespace can have: another in the path of a request would be a kind that no API server knows."""


class Settings(BaseModel):
    """Base of all settings: frozen, a field that does not exist is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class ComponentSettings(Settings):
    """What one component lets people set; nothing unless it derives a model of its own.

    The field ``config`` of the component placement is the option ``--placement-config``, unless the field's
    annotation has a :class:`Flag`.
    """

    leader_elected: ClassVar[bool] = True
    """False for a component of which every node has one that works; it needs no Lease."""
    asks_api_server: ClassVar[bool] = True
    """False for a component that never does, and runs where there are no credentials."""


class RunSettings(Settings):
    """How a process runs its components."""

    kubeconfig: Path | None = None
    """Kubeconfig file; unset: $KUBECONFIG, then the pod's service account, then ~/.kube/config."""
    context: str | None = None
    """Context of the kubeconfig; unset: the current one of the file."""
    leader_elect: bool = True
    """Work only while holding the Lease berth-COMPONENT; needed with several replicas."""
    lease_namespace: NamespaceName | None = None
    """Namespace of the Leases; unset: the namespace of the connection."""
    lease_duration: float = Field(default=15.0, ge=1.0, le=3600.0)
    """Seconds until another replica takes over from a dead one, 1 to 3600."""
    health_host: str = "0.0.0.0"  # noqa: S104 - kubelet probes come from outside the pod
    """Address of /healthz, /readyz and /metrics."""
    health_port: int = Field(default=8080, ge=0, le=65535)
    """Port of these three; 0 picks a free one, which the log line "started" names."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Least severity that is logged."""
    log_format: Literal["json", "text"] = "json"
    """JSON lines, or text for a terminal."""


@dataclass(frozen=True, slots=True)
class Flag:
    """In the annotation of a field: its option where that is not ``--COMPONENT-FIELD``."""

    name: str


@dataclass(frozen=True, slots=True)
class Option:
    """The command line option of one field."""

    field: str
    """Name of the field in its model."""
    flag: str
    """The option, such as ``--placement-config``."""
    metavar: str
    """What to write after it, such as ``FILE``; empty for a switch, which ``--no-...`` turns off."""
    default: str
    """The default as people write it; empty if there is none."""
    description: str
    """The field's documentation."""


class SettingsError(Exception):
    """An option has a value that cannot be right; the text names the option and says what is accepted."""


S = TypeVar("S", bound=Settings)


def options_of(model: type[Settings], component: str = "") -> list[Option]:
    """Options of a model's fields, in the model's order; `component` is whose settings these are, if anyone's."""
    return [_option(name, info, component) for name, info in model.model_fields.items()]


def settings_from(model: type[S], component: str, given: Mapping[str, Any]) -> S:
    """Settings from what the command line gives, by flag; other models' flags are left alone.

    Raises:
        SettingsError: a value is not valid.
    """
    flags = {option.field: option.flag for option in options_of(model, component)}
    try:
        return model.model_validate({field: given[flag] for field, flag in flags.items() if flag in given})
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        text = problem["msg"].removeprefix("Value error, ")
        raise SettingsError(
            f"{flags[str(problem['loc'][0])]} {str(problem['input'])!r}: {text[:1].lower()}{text[1:]}"
        ) from error


def _option(name: str, info: FieldInfo, component: str) -> Option:
    systematic = "-".join((*([component] if component else []), *name.split("_")))
    flag = next((item.name for item in info.metadata if isinstance(item, Flag)), f"--{systematic}")
    return Option(name, flag, _metavar(info.annotation), _text(info.default), info.description or "")


def _text(default: Any) -> str:
    if default is None or isinstance(default, bool):
        return "" if default is None else "on" if default else "off"
    return f"{default:g}" if isinstance(default, float) else str(default)


def _metavar(annotation: Any) -> str:
    if get_origin(annotation) is Literal:
        return "|".join(get_args(annotation))
    if get_origin(annotation) is Annotated:
        return _metavar(get_args(annotation)[0])
    alternatives = [kind for kind in get_args(annotation) if kind is not NoneType]
    if alternatives:
        return _metavar(alternatives[0])
    return {bool: "", Path: "FILE", int: "NUMBER", float: "NUMBER"}.get(annotation, "TEXT")
