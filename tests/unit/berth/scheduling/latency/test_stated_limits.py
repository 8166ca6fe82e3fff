"""Which limits count: those of the policy, or those of the annotations that the thesis has."""

from __future__ import annotations

import pytest

from berth.scheduling.latency.stated_limits import UnreadableLimitError, annotated_limits, with_limits
from tests.support.latency import policy

HARD, SOFT = "hard_max_latency", "soft_max_latency"


@pytest.mark.parametrize(
    ("stated", "annotations", "counts"),
    [
        pytest.param({}, {}, (None, None), id="none"),
        pytest.param({}, {HARD: "40", SOFT: "30"}, (40, 30), id="both by annotation"),
        pytest.param({}, {HARD: "40"}, (40, None), id="the hard one"),
        pytest.param({}, {SOFT: " 30 "}, (None, 30), id="the soft one, with spaces"),
        pytest.param({}, {HARD: "60000", SOFT: "60000"}, (60_000, 60_000), id="the largest"),
        pytest.param({"hard": 80}, {HARD: "40", SOFT: "30"}, (80, None), id="the policy's alone, not mixed"),
        pytest.param({"soft": 20}, {HARD: "10"}, (None, 20), id="the policy's soft one alone"),
        pytest.param({"hard": 80}, {HARD: "near"}, (80, None), id="what does not count is not read"),
        pytest.param({"objective": "Minimum"}, {HARD: "40"}, (40, None), id="beside the minimum"),
    ],
)
def test_what_counts(stated: dict[str, object], annotations: dict[str, str], counts: tuple[int | None, ...]) -> None:
    spec = policy(**stated)
    found = with_limits(spec, annotated_limits(spec, annotations))
    assert (found.hard_max_latency, found.soft_max_latency) == counts
    assert found.objective is spec.objective


@pytest.mark.parametrize(
    ("annotations", "words"),
    [
        *(
            pytest.param({HARD: text}, ["hard_max_latency", "is no limit", "1 to 60000"], id=repr(text)[:20])
            for text in ("", "40ms", "0", "-1", "1.5", "60001", "1e3", "٤٠", "9" * 5000)
        ),
        pytest.param({HARD: "40", SOFT: "x"}, ["soft_max_latency 'x' is no limit"], id="the soft one"),
        pytest.param(
            {HARD: "30", SOFT: "40"}, ["soft_max_latency 40 is above hard_max_latency 30"], id="soft above hard"
        ),
    ],
)
def test_what_is_no_limit_is_told_with_what_to_write(annotations: dict[str, str], words: list[str]) -> None:
    with pytest.raises(UnreadableLimitError) as caught:
        annotated_limits(policy(), annotations)
    assert [word for word in words if word not in str(caught.value)] == []
    assert len(str(caught.value)) < 200
