"""Plans for pods with claims: a volume is given once, and every pod of a claim goes where its volume is."""

from __future__ import annotations

import pytest

from berth.kube.objects import Pod
from berth.scheduling.cache.volume_matching import VolumePlan, volume_plan
from tests.support.placement import Lab, chain, group_object, lone, member, where, zoned
from tests.support.volumes import claim, storage_class, using, volume


def user(name: str, *claims: str) -> Pod:
    return lone(name, spec=using(*claims))


@pytest.fixture
def lab() -> Lab:
    made = Lab([zoned(f"n{number}", labels={"zone": f"n{number}"}) for number in (1, 2, 3)])
    made.cache.update_storage(storage_class("local", provisioner="kubernetes.io/no-provisioner"))
    made.cache.update_storage(storage_class())
    for number in (1, 2, 3):
        made.cache.update_storage(claim(f"local-{number}", storageClassName="local"))
    made.cache.update_storage(claim("dynamic"))
    return made


def offer(lab: Lab, *nodes: str) -> None:
    """Have a local volume available on each of these nodes."""
    for node in nodes:
        lab.cache.update_storage(volume(f"on-{node}", zone=node, storageClassName="local"))


def test_a_reserved_volume_is_not_given_twice(lab: Lab) -> None:
    offer(lab, "n2")
    assert where(lab.place_alone(user("p", "local-1"))) == {"p": "n2"}
    outcome = lab.place_alone(user("q", "local-2"))
    assert outcome.decisions == ()
    assert "didn't find available persistent volumes" in outcome.failures[0].message


def test_a_forgotten_volume_is_given_again(lab: Lab) -> None:
    offer(lab, "n2")
    (decision,) = lab.place_alone(user("p", "local-1")).decisions
    lab.cache.forget(decision.pod)
    assert where(lab.place_alone(user("q", "local-2"))) == {"q": "n2"}


def test_the_same_plan_comes_out_again_when_it_is_written(lab: Lab) -> None:
    offer(lab, "n2")
    pod = user("p", "local-1", "dynamic")
    lab.place_alone(pod)
    again = volume_plan(pod, lab.cache.state, "n2")
    assert again == VolumePlan(reserve={"on-n2": "default/local-1"}, provision=["default/dynamic"])


def test_a_second_pod_of_the_claim_follows_the_selected_node(lab: Lab) -> None:
    first = where(lab.place_alone(user("p", "dynamic")))["p"]
    assert where(lab.place_alone(user("q", "dynamic"))) == {"q": first}


def test_members_of_a_group_with_one_volume_each(lab: Lab) -> None:
    offer(lab, "n1", "n3")
    shop = lab.group(group_object("shop", *chain("a", "b", "c")))
    one, two, three = (member(name, name, spec=using(f"local-{n}")) for n, name in enumerate("abc", start=1))
    assert set(where(lab.place(shop, one, two)).values()) == {"n1", "n3"}
    assert lab.place(shop, three).decisions == ()


@pytest.mark.parametrize("limit", [{"maxNetworkCost": 1}, {}], ids=["calls stay in the zone", "calls may leave it"])
@pytest.mark.parametrize("zones", [("z1", "z1", "z2", "z2", "z2"), ("z2", "z2", "z2", "z1", "z1")], ids=" ".join)
def test_replicas_go_where_there_are_volumes_for_all_of_them(zones: tuple[str, ...], limit: dict[str, int]) -> None:
    """Three replicas and a volume on each node: one zone has two nodes, the other three."""
    lab = Lab([zoned(f"n{number}", zone, labels={"zone": f"n{number}"}) for number, zone in enumerate(zones)])
    lab.cache.update_storage(storage_class("local", provisioner="kubernetes.io/no-provisioner"))
    for number in range(3):
        lab.cache.update_storage(claim(f"local-{number}", storageClassName="local"))
    offer(lab, *(f"n{number}" for number in range(5)))
    shop = lab.group(group_object("shop", *chain("a", "b", **limit)))
    members = [member(f"a-{number}", "a", spec=using(f"local-{number}")) for number in range(3)]
    chosen = where(lab.place(shop, *members, member("b", "b")))
    assert {zones[int(node[1:])] for node in chosen.values()} == {"z2"}
    assert len({chosen[pod.metadata.name] for pod in members}) == 3
