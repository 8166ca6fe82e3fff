"""Interference classes: how a workload gets on with others that share caches and memory bandwidth with it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from berth.api.errors import FieldProblem
from berth.api.labels import LABEL_CATEGORY, LABEL_INTERFERENCE_CLASS
from berth.api.text import shortened

_MAX_SHOWN: Final = 64
"""Bytes of a label's value that are repeated to people; the API server takes 63 characters, a manifest any number."""
_CATEGORY: Final = "cat"
"""What stands before the letter in values of the label ``category``."""


class InterferenceClass(StrEnum):
    """Does a workload suffer, and does it make others suffer? At a limit, such as 1.2 times the run time alone."""

    A = "A"
    """neither"""
    B = "B"
    """sensitive: it suffers"""
    C = "C"
    """contentious: others suffer"""
    D = "D"
    """both"""

    __hash__ = str.__hash__  # an Enum's own is a call of Python; placement looks up pods by class

    @property
    def sensitive(self) -> bool:
        """Whether it suffers beside contentious workloads."""
        return self in (InterferenceClass.B, InterferenceClass.D)

    @property
    def contentious(self) -> bool:
        """Whether sensitive workloads suffer beside it."""
        return self in (InterferenceClass.C, InterferenceClass.D)

    @classmethod
    def of(cls, *, sensitive: bool, contentious: bool) -> InterferenceClass:
        """Return the class with these two properties."""
        return next(each for each in cls if (each.sensitive, each.contentious) == (sensitive, contentious))


class StatedClass(NamedTuple):
    """What the labels of a pod say about its class."""

    interference_class: InterferenceClass | None
    """the class; None: the pod states none, or none that could be read: a WorkloadProfile may, else it is left alone"""
    problem: FieldProblem | None = None
    """what is wrong with the labels"""


def stated_class(labels: Mapping[str, str], key: str = LABEL_INTERFERENCE_CLASS) -> StatedClass:
    """Return the class that a pod's labels state.

    Args:
        labels: labels of the pod.
        key: label that holds ``A`` to ``D``, or ``catA`` to ``catD``. The label ``category`` with one of the latter
            counts as well; with any other value it is somebody else's.
    """
    value, category = labels.get(key), _category(labels.get(LABEL_CATEGORY, ""))
    if value is None:
        return StatedClass(category)
    found = _category(value) or (InterferenceClass(value) if value in set(InterferenceClass) else None)
    path = ("metadata", "labels", key)
    if found is None:
        text = f'"{shortened(value, _MAX_SHOWN)}" is no interference class and counts as no label; '
        return StatedClass(None, FieldProblem(path, f"{text}write one of {', '.join(InterferenceClass)}"))
    if category not in (None, found):
        text = f"{found} here and {category} in the label {LABEL_CATEGORY} are two classes, and count as "
        return StatedClass(None, FieldProblem(path, f"{text}no label; remove one of them"))
    return StatedClass(found)


def _category(value: str) -> InterferenceClass | None:
    letter = value.removeprefix(_CATEGORY)
    return InterferenceClass(letter) if value != letter and letter in set(InterferenceClass) else None
