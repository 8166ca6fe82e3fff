"""Kubernetes quantities: ``100m``, ``64Mi``, ``1e9``, ``10Gi``.

Grammar and rounding follow ``k8s.io/apimachinery/pkg/api/resource``: a decimal number and a
suffix, which is either decimal SI (``n u m k M G T P E``), binary SI (``Ki Mi Gi Ti Pi Ei``) or a
decimal exponent (``e9``, ``E-3``). Amounts finer than one nano are rounded up, away from zero, and
the whole value of a fraction is rounded up, as the API server and the kubelet do.
"""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, ROUND_UP, Decimal, localcontext
from functools import lru_cache, total_ordering
from typing import Annotated, Any, Final

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, PlainValidator, WithJsonSchema
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

_SUFFIXES: Final[dict[str, Decimal]] = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "": Decimal(1),
    "k": Decimal(10**3),
    "M": Decimal(10**6),
    "G": Decimal(10**9),
    "T": Decimal(10**12),
    "P": Decimal(10**15),
    "E": Decimal(10**18),
    "Ki": Decimal(2**10),
    "Mi": Decimal(2**20),
    "Gi": Decimal(2**30),
    "Ti": Decimal(2**40),
    "Pi": Decimal(2**50),
    "Ei": Decimal(2**60),
}
_GRAMMAR: Final = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))(?:[eE](?P<exponent>[+-]?[0-9]+)|(?P<suffix>[KMGTPE]i|[numkMGTPE]?))"
)
_NANO: Final = Decimal("1e-9")
_MAX_EXPONENT: Final = 99
_MAX_LENGTH: Final = 128
"""Characters: longer ones are nobody's amounts, and are kept by none of the caches that are keyed by texts."""
_PRECISION: Final = 300


class QuantityError(ValueError):
    """A text is no Kubernetes quantity; the message says what one looks like."""


class QuantityRangeError(QuantityError):
    """A quantity whose exponent is beyond what is read, though the API server takes it."""

    def __init__(self, text: str, *, number: Decimal, exponent: int) -> None:
        """Keep what it may count as."""
        super().__init__(f"{text!r} has an exponent beyond ±{_MAX_EXPONENT}; write a smaller one")
        self.nearest = number.scaleb(_MAX_EXPONENT if exponent > 0 else -_MAX_EXPONENT)
        """the amount with the greatest exponent that is read"""


@total_ordering
class Quantity:
    """An exact amount with the text it was written in.

    Immutable, hashable and ordered by amount: ``Quantity("1k") == Quantity("1000")``.

    Raises:
        QuantityError: the text is not a valid quantity.
        TypeError: the value is neither a string nor an int.
    """

    __slots__ = ("_amount", "_text")

    def __init__(self, value: str | int) -> None:
        """Parse ``value``; an int is a whole amount."""
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            raise TypeError(f"a quantity is a string or an int, not {type(value).__name__}")
        self._text = str(value)
        self._amount = parse_quantity(self._text)

    @property
    def amount(self) -> Decimal:
        """The exact amount in base units (cores, bytes, bit/s)."""
        return self._amount

    def value(self) -> int:
        """Return the amount as a whole number of base units, rounded up."""
        return int(self._amount.to_integral_value(rounding=ROUND_CEILING))

    def __eq__(self, other: object) -> bool:
        """Compare by amount, not by text."""
        return self._amount == other._amount if isinstance(other, Quantity) else NotImplemented

    def __lt__(self, other: object) -> bool:
        """Order by amount."""
        return self._amount < other._amount if isinstance(other, Quantity) else NotImplemented

    def __hash__(self) -> int:
        """Hash by amount, so that equal amounts are one key."""
        return hash(self._amount)

    def __str__(self) -> str:
        """Return the text the quantity was written in."""
        return self._text

    def __repr__(self) -> str:
        """Return a constructor call."""
        return f"Quantity({self._text!r})"

    @classmethod
    def __get_pydantic_core_schema__(cls, source: type[Any], handler: GetCoreSchemaHandler) -> CoreSchema:
        """Let pydantic read a quantity from a string or an int and write it as its text."""
        return core_schema.no_info_plain_validator_function(
            cls._validate,
            serialization=core_schema.plain_serializer_function_ser_schema(str, return_schema=core_schema.str_schema()),
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Describe a quantity the way the API server's structural schemas do."""
        return {
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "x-kubernetes-int-or-string": True,
        }

    @classmethod
    def _validate(cls, value: Any) -> Quantity:
        if isinstance(value, Quantity):
            return value
        try:
            return cls(value)
        except TypeError as error:
            raise ValueError(str(error)) from error  # pydantic turns only ValueError into a validation error


def _quantity_text(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise ValueError(f"a quantity is a string or a whole number, not {value!r}; put it in quotes")
    return str(value)


QuantityText = Annotated[
    str,
    PlainValidator(_quantity_text),
    WithJsonSchema({"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}),
]
"""What the API accepts where a quantity belongs: any text or whole number, which need not be one."""


def read_quantity(text: str | None) -> Quantity | None:
    """Return the quantity of ``text``; None when there is no text or it is no quantity."""
    try:
        return Quantity(text) if text is not None else None
    except QuantityError:
        return None


@lru_cache(maxsize=4096)
def _parse(text: str) -> Decimal:
    match = _GRAMMAR.fullmatch(text)
    if match is None:
        raise QuantityError(
            f"{text!r} is not a valid quantity; write a number with an optional suffix, such as 100m, 250M, 64Mi or 1e9"
        )
    with localcontext(prec=_PRECISION):
        if match["exponent"] is None:
            amount = Decimal(match["number"]) * _SUFFIXES[match["suffix"]]
        else:
            exponent = int(match["exponent"])
            if abs(exponent) > _MAX_EXPONENT:
                raise QuantityRangeError(text, number=Decimal(match["number"]), exponent=exponent)
            amount = Decimal(match["number"]).scaleb(exponent)
        return amount.quantize(_NANO, rounding=ROUND_UP).normalize()


def parse_quantity(value: str | int) -> Decimal:
    """Return the exact amount of ``value`` in base units.

    Raises:
        QuantityError: the text is not a valid quantity.
    """
    text = str(value)
    if len(text) > _MAX_LENGTH:
        raise QuantityError(f"{text[:20]!r}… has more than {_MAX_LENGTH} characters; write a shorter one")
    return _parse(text)
