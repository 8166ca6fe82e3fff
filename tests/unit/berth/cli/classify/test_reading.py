"""Files of run times: both forms, and what is none."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.cli.classify.reading import RunTimes, RunTimesError, read_run_times

BOTH = RunTimes({"a": [10.0, 12.0], "b": [5.0]}, {"a": {"b": [12.5]}, "b": {"a": [6.0]}})


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("workload,beside,seconds\na,,10\na,,12\nb,,5\na,b,12.5\nb,a,6\n", id="CSV"),
        pytest.param(
            "Seconds, node, Beside, Workload\n10,1,,a\n12,2,,a\n5,1,,b\n12.5,1,b,a\n6,1,a,b",
            id="more columns",
        ),
        pytest.param(
            "workload,beside,seconds\na,,10,\na,,12,,\nb,,5, ,\na,b,12.5,\nb,a,6,\n",
            id="empty cells of no column",
        ),
        pytest.param(
            '\ufeffworkload,beside,seconds\r\n"a",,10\r\n\r\na,"",12\r\nb,,5\r\na,b,12.5\r\nb,a,6',
            id="BOM",
        ),
        pytest.param(
            json.dumps(
                {
                    "note": "any other field",
                    "isolated_runtime_s": {"a": [10, 12], "b": 5},
                    "corun_runtime_s": {"a": {"a": None, "b": 12.5}, "b": {"a": [6]}},
                }
            ),
            id="JSON",
        ),
        pytest.param(
            '\n{"corun_runtime_s": {"a": {"b": 12.5}, "b": {"a": 6}}, "isolated_runtime_s": {"a": ["10", 12], "b": 5}}',
            id="JSON with a text and a leading line",
        ),
    ],
)
def test_forms(text: str) -> None:
    assert read_run_times(text) == BOTH


CSV = "workload,beside,seconds\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("", "line 1: no column workload and no column beside and no column seconds", id="empty"),
        pytest.param("workload;beside;seconds\n", "write workload,beside,seconds", id="semicolons"),
        pytest.param("workload,seconds\na,5\n", "line 1: no column beside", id="no column"),
        pytest.param(CSV, "no run time of a workload alone", id="heading alone"),
        pytest.param(f"{CSV}a,b,5\n", "no run time of a workload alone", id="nobody alone"),
        pytest.param(f"{CSV}a,,5\na,b\n", "line 3: 2 cells, the heading has 3", id="short line"),
        pytest.param(f"{CSV}a,,5,25\n", "line 2: 4 cells, the heading has 3; write 5.25", id="decimal comma"),
        pytest.param("workload,seconds,beside,Seconds\na,5,,6\n", "line 1: two columns seconds", id="column twice"),
        pytest.param(f"{CSV},,5\n", "line 2: no workload", id="no name"),
        pytest.param(f'{CSV}"a\x1b[31m",,5\n', "line 2: 'a\\x1b[31m' is no name of a workload", id="colours"),
        pytest.param(f'{CSV}a,"b\nc",5\n', "'b\\nc' is no name of a neighbour", id="two lines"),
        pytest.param(f"{CSV}a,,fast\n", "line 2: 'fast' is no run time; write seconds above 0", id="words"),
        pytest.param(f"{CSV}a,,0\n", "line 2: '0' is no run time", id="0"),
        pytest.param(f"{CSV}a,,-1\n", "'-1' is no run time", id="negative"),
        pytest.param(f"{CSV}a,,nan\n", "'nan' is no run time", id="NaN"),
        pytest.param(f"{CSV}a,,inf\n", "'inf' is no run time", id="infinite"),
        pytest.param(f'{CSV}"a,,5\n', "line 2: unexpected end of data", id="open quote"),
        pytest.param("{", "no JSON", id="open brace"),
        pytest.param("{}", "no run time of a workload alone", id="empty object"),
        pytest.param('{"isolated_runtime_s": [1]}', "isolated_runtime_s: write a map", id="list for a map"),
        pytest.param(f'{{"isolated_runtime_s": {{"a": {10**400}}}}}', "is no run time", id="more than a float holds"),
        pytest.param('{"isolated_runtime_s": {"a": true}}', "isolated_runtime_s.a: True is no run time", id="boolean"),
        pytest.param('{"isolated_runtime_s": {"a": {}}}', "isolated_runtime_s.a: {} is no run time", id="map"),
        pytest.param(
            '{"isolated_runtime_s": {"a": 5}, "corun_runtime_s": {"a": 6}}', "corun_runtime_s.a: write a map", id="flat"
        ),
        pytest.param(
            '{"isolated_runtime_s": {"a": 5}, "corun_runtime_s": {"a": {"b": "x"}}}',
            "corun_runtime_s.a.b: 'x' is no run time",
            id="text",
        ),
        pytest.param(
            '{"isolated_runtime_s": {"a": 5}, "corun_runtime_s": {"a": {"": 9}}}',
            "corun_runtime_s.a: '' is no name of a neighbour",
            id="neighbour without a name",
        ),
        pytest.param('{"isolated_runtime_s": {" ": 5}}', "' ' is no name of a workload", id="workload without a name"),
        pytest.param('{"isolated_runtime_s": {"a\\tb": 5}}', "is no name of a workload", id="control character"),
        pytest.param('{"isolated_runtime_s": {"\\ud800": 5}}', "is no name of a workload", id="half of a character"),
        pytest.param(
            '{"isolated_runtime_s": {"a": 5}, "corun_runtime_s": {" ": {"a": 9}}}',
            "corun_runtime_s: ' ' is no name of a workload",
            id="workload without a name beside another",
        ),
        pytest.param(
            '{"isolated_runtime_s": {"a": 5, "b": 5, "a": 50}}', "'a' stands twice in one object", id="one twice"
        ),
        pytest.param('{"a":' * 100_000, "no JSON", id="nested beyond measure"),
    ],
)
def test_what_holds_no_run_times(text: str, problem: str) -> None:
    with pytest.raises(RunTimesError) as refused:
        read_run_times(text)
    assert problem in str(refused.value)


@given(st.text() | st.text(alphabet='{}[]":,aworkldbesidcn\n\r0123456789.-').map(CSV.__add__))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        times = read_run_times(text)
    except RunTimesError:
        return
    assert times.alone
