"""Times of pods, as a benchmark's watch and the answers to its creations tell them."""

from __future__ import annotations

from types import SimpleNamespace

import msgspec
import pytest

from berth.kube.objects import Pod
from hack.harness import observe


def pod(node: str = "") -> Pod:
    return msgspec.convert({"metadata": {"name": "p", "uid": "u"}, "spec": {"nodeName": node}}, Pod)


@pytest.mark.parametrize(
    ("told", "created", "bound"),
    [
        pytest.param([("answer", 1.0), ("watch", 3.0), ("bound", 4.0)], 1.0, 4.0, id="the watch lags"),
        pytest.param([("watch", 1.0), ("answer", 2.0), ("bound", 4.0)], 1.0, 4.0, id="the answer is read late"),
        pytest.param([("bound", 2.0), ("answer", 3.0)], 2.0, 2.0, id="bound before its creation was answered"),
        pytest.param([("watch", 1.0), ("bound", 2.0), ("bound", 5.0)], 1.0, 2.0, id="not created by us"),
    ],
)
def test_what_is_told_first_counts(
    monkeypatch: pytest.MonkeyPatch, told: list[tuple[str, float]], created: float, bound: float
) -> None:
    log = observe.PodLog()
    for what, at in told:
        monkeypatch.setattr(observe, "time", SimpleNamespace(monotonic=lambda at=at: at))
        if what == "answer":
            log.answered("u")
        else:
            log.note(None, pod("n" if what == "bound" else ""))
    assert (log.created, log.bound, log.rebound) == ({"u": created}, {"u": bound}, 0)
