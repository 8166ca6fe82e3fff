"""Quantities: grammar, rounding, order, and their place in a model. Sizes in a CRD are covered by test_schema."""

import re
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from berth.api.quantity import Quantity, QuantityError, QuantityText, _parse, parse_quantity, read_quantity

AMOUNTS = [
    ("0", "0"),
    ("100", "100"),
    ("100m", "0.1"),
    ("1.5", "1.5"),
    ("1.", "1"),
    (".5", "0.5"),
    ("+5", "5"),
    ("-5", "-5"),
    ("64Mi", str(64 * 2**20)),
    ("1Ki", "1024"),
    ("1.5Gi", str(3 * 2**29)),
    ("2Ti", str(2**41)),
    ("1Pi", str(2**50)),
    ("1Ei", str(2**60)),
    ("250u", "0.00025"),
    ("7n", "0.000000007"),
    ("3k", "3000"),
    ("10M", "10000000"),
    ("1G", "1000000000"),
    ("1T", "1000000000000"),
    ("1P", "1000000000000000"),
    ("1E", "1000000000000000000"),
    ("1e9", "1000000000"),
    ("1E3", "1000"),
    ("5e-3", "0.005"),
    ("12e+2", "1200"),
]


@pytest.mark.parametrize(("text", "amount"), AMOUNTS, ids=[text for text, _ in AMOUNTS])
def test_amount(text: str, amount: str) -> None:
    assert Quantity(text).amount == Decimal(amount)
    assert parse_quantity(text) == Decimal(amount)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "10 Mbit/s",
        "1 Gi",
        "Mi",
        "1Kib",
        "1K",
        "10MB",
        "1e",
        "1e1.5",
        "--1",
        "1.2.3",
        "0x10",
        "١",
        "1Mi\n",
        "NaN",
        "1e100",
    ],
)
def test_bad_text_is_refused_with_the_text_and_a_remedy(text: str) -> None:
    with pytest.raises(QuantityError) as caught:
        Quantity(text)
    assert repr(text) in str(caught.value)
    assert "write" in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("9" * 300 + "E", id="too large to compute with"),
        pytest.param("9" * 10**6, id="too large for any decimal"),
        pytest.param("1e" + "9" * 5000, id="more digits than Python converts"),
        pytest.param("0" * 10**6 + "1", id="a million zeros before it"),
        pytest.param("x" * 10**6, id="no quantity"),
    ],
)
def test_long_text_is_refused_and_not_kept(text: str) -> None:
    """A megabyte of digits is a quantity to nobody, and thousands of them would fill the memory."""
    before = _parse.cache_info().currsize
    with pytest.raises(QuantityError, match="has more than 128 characters; write a shorter one"):
        parse_quantity(text)
    assert read_quantity(text) is None
    assert _parse.cache_info().currsize == before


@pytest.mark.parametrize("text", ["9" * 127 + "E", "9" * 125 + "e99", "0." + "1" * 126, "1e-99"], ids=len)
def test_text_of_any_other_length_is_computed_with(text: str) -> None:
    assert Quantity(text).value() >= 1


@pytest.mark.parametrize("value", [1.5, None, True, [], Decimal(1)], ids=repr)
def test_other_types_are_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="a string or an int"):
        Quantity(value)


@pytest.mark.parametrize(
    ("text", "whole"),
    [("100m", 1), ("1", 1), ("1500m", 2), ("-100m", 0), ("-1500m", -1), ("64Mi", 67108864), ("1n", 1), ("0", 0)],
)
def test_whole_values_are_rounded_up(text: str, whole: int) -> None:
    assert Quantity(text).value() == whole


@pytest.mark.parametrize(("text", "nanos"), [("0.1n", 1), ("1.5n", 2), ("-0.1n", -1), ("1e-12", 1)])
def test_finer_than_nano_is_rounded_away_from_zero(text: str, nanos: int) -> None:
    assert Quantity(text).amount == Decimal(nanos).scaleb(-9)


@pytest.mark.parametrize(("left", "right"), [("1k", "1000"), ("1Gi", "1024Mi"), ("0.5", "500m"), ("1e3", "1k")])
def test_equal_amounts_are_equal_and_one_key(left: str, right: str) -> None:
    assert Quantity(left) == Quantity(right)
    assert {Quantity(left): "x"}[Quantity(right)] == "x"
    assert str(Quantity(left)) == left


def test_a_quantity_is_not_its_text() -> None:
    assert Quantity("1") != "1"
    assert repr(Quantity("1Gi")) == "Quantity('1Gi')"
    mixed: list[Any] = [Quantity("1"), "2"]
    with pytest.raises(TypeError):
        sorted(mixed)


@settings(deadline=None)
@given(st.integers(-(10**18), 10**18), st.integers(-(10**18), 10**18))
def test_order_is_the_order_of_amounts(left: int, right: int) -> None:
    assert (Quantity(left) < Quantity(right)) == (left < right)
    assert (Quantity(left) >= Quantity(right)) == (left >= right)


QUANTITY_PATTERN = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
"""Quantities as schemas written by controller-gen accept them."""


class _Lenient(BaseModel):
    amount: QuantityText | None = None


@pytest.mark.parametrize(
    ("raw", "text", "amount"),
    [("64Mi", "64Mi", 2**26), (5, "5", 5), ("10 Mbit/s", "10 Mbit/s", None), ("", "", None), (None, None, None)],
    ids=repr,
)
def test_a_lenient_field_keeps_any_text(raw: object, text: str | None, amount: int | None) -> None:
    held = _Lenient.model_validate({"amount": raw})
    assert held.amount == text
    found = read_quantity(held.amount)
    assert (None if found is None else found.value()) == amount


@pytest.mark.parametrize("raw", [1.5, True, {}], ids=repr)
def test_a_lenient_field_takes_what_the_api_server_takes(raw: object) -> None:
    with pytest.raises(ValidationError, match="quantity"):
        _Lenient.model_validate({"amount": raw})


class _Holder(BaseModel):
    amount: Quantity | None = None


@pytest.mark.parametrize(("raw", "text"), [("64Mi", "64Mi"), (5, "5"), (Quantity("1k"), "1k"), (None, None)], ids=repr)
def test_in_a_model_it_reads_both_forms_and_writes_its_text(raw: object, text: str | None) -> None:
    assert _Holder.model_validate({"amount": raw}).model_dump(mode="json") == {"amount": text}


@pytest.mark.parametrize("raw", ["10 Mbit/s", 1.5, True, {}], ids=repr)
def test_in_a_model_a_bad_one_is_a_validation_error(raw: object) -> None:
    with pytest.raises(ValidationError, match="quantity"):
        _Holder.model_validate({"amount": raw})


@settings(deadline=None)
@given(st.from_regex(QUANTITY_PATTERN, fullmatch=True, alphabet="0123456789.+-eEnumkKMGTPi"))
def test_what_upstreams_pattern_accepts_is_a_quantity_unless_its_exponent_is_odd(text: str) -> None:
    _, mark, exponent = text.replace("E", "e").partition("e")
    # The pattern lets a fraction stand in the exponent; the parser of the API server does not.
    odd = len(text) > 128 or (
        bool(mark) and exponent not in ("", "i") and ("." in exponent or abs(int(exponent)) > 100)
    )
    if odd:
        with pytest.raises(QuantityError):
            Quantity(text)
    else:
        assert re.match(QUANTITY_PATTERN, str(Quantity(text)))
