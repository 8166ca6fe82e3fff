"""The strategy that draws situations (situations.py) from topics (topics.py)."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.support.situations import RACK, ZONE, Draw, Situation, labels_of, namespace, node, pod
from tests.support.topics import TOPICS


@st.composite
def situations(draw: Draw, topic: str) -> Situation:
    """A situation about one topic, and perhaps one or two others."""
    found = Situation(namespaces=[namespace("@-a", {"@.test/team": "red"}), namespace("@-b", {"@.test/team": "blue"})])
    found.nodes = [node(number) for number in range(draw(st.integers(1, 4)))]
    for item in found.nodes:
        labels = item["metadata"]["labels"]
        for key, values in ((ZONE, "ab"), (RACK, "12")):
            value = draw(st.sampled_from([*values, *values, ""]))
            if value:
                labels[key] = value
    for number in range(draw(st.integers(0, 4))):
        where = draw(st.sampled_from(found.nodes))["metadata"]["name"]
        home = draw(st.sampled_from(["@-a", "@-a", "@-b"]))
        found.pods.append(pod(f"p{number}", on=where, namespace=home, labels=labels_of(draw)))
    found.pod = pod("new", labels=labels_of(draw))
    others = draw(st.lists(st.sampled_from([other for other in TOPICS if other != topic]), max_size=2, unique=True))
    found.topics = [topic, *others]
    for name, apply in TOPICS.items():  # in this order: some topics replace what others set
        if name in found.topics:
            apply(draw, found)
    for item in found.pods:
        fate = draw(st.sampled_from(["runs", "runs", "runs", "runs", "deleting", "finished"]))
        if fate == "deleting":
            item["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        elif fate == "finished":
            item.setdefault("status", {})["phase"] = draw(st.sampled_from(["Succeeded", "Failed"]))
    return found
