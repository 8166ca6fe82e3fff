"""WorkloadProfile: how a workload gets on with others on its socket, ``berth.dev/v1alpha1``, namespaced."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, ConfigDict, Field, PlainSerializer, ValidationInfo, WithJsonSchema

from berth.api import rules
from berth.api.base import AS_SENT, ApiModel, ApiObject, Int32, TimestampOrNone
from berth.api.interference import InterferenceClass
from berth.api.labels import BERTH_GROUP

API_VERSION: Final = f"{BERTH_GROUP}/v1alpha1"
"""``apiVersion`` of every WorkloadProfile."""
KIND: Final = "WorkloadProfile"
"""``kind`` of every WorkloadProfile."""
PLURAL: Final = "workloadprofiles"
"""Resource name in API paths."""

PLACES: Final = 3
"""Decimal places of a slowdown: run times vary by more than a thousandth."""
MAX_NEIGHBOURS: Final = 500
"""Neighbours in the table of a profile at most."""
MAX_NAME: Final = 253
"""Characters of an object's name."""

_SLOWDOWN: Final = r"^(0\.[1-9][0-9]{0,2}|[1-9][0-9]{0,2}(\.[0-9]{1,3})?)$"


def _read_slowdown(value: Any, info: ValidationInfo) -> float:
    if isinstance(value, str):
        if not re.fullmatch(_SLOWDOWN, value, re.ASCII):
            raise ValueError(f"{value!r} is no slowdown; write a decimal number of three places such as '1.25'")
        return float(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.1 <= value < 1000:
        raise ValueError(f"{value!r} is no slowdown; write a decimal number from 0.1 to 999.999 in quotes")
    if info.context is AS_SENT:
        raise ValueError(f"{value!r} is a number, and has to be text; write it in quotes")
    return round(float(value), PLACES)


def _write_slowdown(value: float) -> str:
    return f"{value:.{PLACES}f}"


Slowdown = Annotated[
    float,
    BeforeValidator(_read_slowdown),
    PlainSerializer(_write_slowdown, return_type=str),
    WithJsonSchema({"type": "string", "pattern": _SLOWDOWN, "maxLength": 7}),
]
"""A run time divided by that alone: a float in Python, decimal text on the wire, where floats are not exact."""


class LearningMethod(StrEnum):
    """How a profile came about."""

    STATED = "Stated"
    """somebody says so"""
    CO_RUN = "CoRun"
    """from run times alone and beside others"""


class TargetRef(ApiModel):
    """The workload that a profile is about, in the profile's namespace."""

    api_version: str = Field(
        min_length=1, max_length=MAX_NAME, description="Group and version of the workload, such as apps/v1."
    )
    kind: str = Field(min_length=1, max_length=63, description="Kind of the workload, such as Deployment.")
    name: str = Field(min_length=1, max_length=MAX_NAME, description="Name of the workload.")


class NeighbourSlowdown(ApiModel):
    """What the workload suffers from one other."""

    beside: str = Field(
        min_length=1, max_length=MAX_NAME, description="WorkloadProfile of the neighbour, in the same namespace."
    )
    slowdown: Slowdown = Field(description="Run time beside that neighbour, divided by that alone.")


_CO_RUN_RULE: Final = (
    "!has(self.method) || self.method != 'CoRun' || (has(self.sensitivity) && has(self.contentiousness) && "
    "has(self.qosLimit) && "
    "(double(self.sensitivity) >= double(self.qosLimit)) == (self.interferenceClass in ['B', 'D']) && "
    "(double(self.contentiousness) >= double(self.qosLimit)) == (self.interferenceClass in ['C', 'D']))"
)

CO_RUN_MESSAGE: Final = (
    "with method CoRun, sensitivity, contentiousness and qosLimit must be stated, and interferenceClass must be what "
    "follows from them; write method Stated to overrule them"
)
"""What an author of a profile reads whose class does not follow from its figures."""


class WorkloadProfileSpec(ApiModel):
    """What is known about the workload."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                {
                    "rule": _CO_RUN_RULE,
                    "message": CO_RUN_MESSAGE,
                }
            ]
        }
    )

    target_ref: TargetRef = Field(description="Workload that the profile is about.")
    interference_class: InterferenceClass = Field(
        description=(
            "A: neither suffers nor makes others suffer. B: suffers. C: makes others suffer. D: both. A label of the "
            "pod wins over it."
        )
    )
    sensitivity: Slowdown | None = Field(
        default=None, description="What it suffers beside others: slowdown that is exceeded by outliers alone."
    )
    contentiousness: Slowdown | None = Field(
        default=None, description="What others suffer beside it: slowdown that is exceeded by outliers alone."
    )
    qos_limit: Slowdown | None = Field(
        default=None, description="Slowdown from which on a workload counts as suffering, such as 1.2."
    )
    method: LearningMethod | None = Field(
        default=None,
        description=(
            "How the profile was learnt. Stated: somebody says so. CoRun: from run times alone and beside others. "
            "Unset: Stated."
        ),
    )
    samples: Int32 | None = Field(
        default=None, ge=0, description="Slowdowns behind sensitivity and contentiousness, together."
    )
    measured_time: TimestampOrNone = Field(default=None, description="When the run times were measured.")
    slowdowns: tuple[NeighbourSlowdown, ...] = Field(
        default=(),
        max_length=MAX_NEIGHBOURS,
        description="Measured slowdowns beside others, which say more than classes.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["beside"]},
    )


class WorkloadProfile(ApiObject):
    """How a workload gets on with others that share caches and memory bandwidth with it."""

    api_version: str = Field(default=API_VERSION, description=rules.API_VERSION_DESCRIPTION)
    kind: str = Field(default=KIND, description=rules.KIND_DESCRIPTION)
    spec: WorkloadProfileSpec = Field(description="What is known about the workload.")
