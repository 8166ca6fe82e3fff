"""Label selectors, compiled once and matched often.

Semantics are those of metav1.LabelSelector: all requirements must hold; no selector at all
matches nothing; an empty selector matches everything; NotIn and DoesNotExist hold for objects
without the key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from berth.api.errors import FieldPath, InvalidFieldError

if TYPE_CHECKING:
    from berth.kube.objects import LabelSelector

Requirement = tuple[str, str, frozenset[str]]
"""(key, operator, values); the operator is one of In, NotIn, Exists, DoesNotExist."""

OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


@dataclass(frozen=True, slots=True)
class Selector:
    """A compiled label selector."""

    requirements: tuple[Requirement, ...] = ()
    """What must hold, all of it; sorted, so that equal selectors compare equal."""
    nothing: bool = False
    """True for an absent selector, which matches no object."""

    @property
    def everything(self) -> bool:
        """True when every object matches."""
        return not self.nothing and not self.requirements

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels is selected."""
        if self.nothing:
            return False
        for key, operator, values in self.requirements:
            value = labels.get(key)
            if operator == "In":
                if value not in values:
                    return False
            elif operator == "NotIn":
                if value in values:
                    return False
            elif operator == "Exists":
                if value is None:
                    return False
            elif value is not None:
                return False
        return True

    def also(self, extra: Mapping[str, str]) -> Selector:
        """This selector narrowed to objects that carry these labels too; nothing stays nothing."""
        if self.nothing or not extra:
            return self
        added = {(key, "In", frozenset((value,))) for key, value in extra.items()}
        return Selector(_sorted({*self.requirements, *added}))


NOTHING = Selector(nothing=True)
EVERYTHING = Selector()


def compile_selector(selector: LabelSelector | None, *, where: FieldPath = ("labelSelector",)) -> Selector:
    """The compiled form of a selector.

    ``where`` is the field path that errors name. Raises InvalidFieldError for an unknown operator or for
    In and NotIn without values, which the API server rejects too.
    """
    if selector is None:
        return NOTHING
    requirements: set[Requirement] = {(key, "In", frozenset((value,))) for key, value in selector.match_labels.items()}
    for number, expression in enumerate(selector.match_expressions):
        path = (*where, "matchExpressions", number)
        if expression.operator not in OPERATORS:
            raise InvalidFieldError((*path, "operator"), f"{expression.operator!r} is none of {', '.join(OPERATORS)}")
        if expression.operator in ("In", "NotIn") and not expression.values:
            raise InvalidFieldError((*path, "values"), f"{expression.operator} needs at least one value")
        requirements.add((expression.key, expression.operator, frozenset(expression.values)))
    return Selector(_sorted(requirements))


def _sorted(requirements: set[Requirement]) -> tuple[Requirement, ...]:
    return tuple(sorted(requirements, key=lambda item: (item[0], item[1], sorted(item[2]))))
