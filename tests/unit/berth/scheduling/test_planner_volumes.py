"""Plans for pods with claims: a volume is given once, and every pod of a claim goes where its volume is."""

from __future__ import annotations

from typing import Any

import pytest

from berth.kube.objects import Pod
from berth.scheduling.cache.volume_matching import VolumePlan, volume_plan
from tests.support.placement import Lab, chain, group_object, lone, member, where, zoned
from tests.support.volumes import claim, csi_node, storage_class, using, volume


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


@pytest.mark.parametrize("labels", [{}, {"tenant": "x"}], ids=["alike but for it", "another label"])
def test_a_replica_that_has_no_claim_does_not_stand_for_one_that_has(lab: Lab, labels: dict[str, str]) -> None:
    """Both of a workload are on n1, whose volume one of them takes: who calls them finds another elsewhere."""
    offer(lab, "n1", "n2")
    shop = lab.group(group_object("shop", *chain("b", "a")))
    there = {"nodeSelector": {"zone": "n1"}}
    replicas = member("a-0", "a", labels=labels, spec=there), member("a-1", "a", spec={**there, **using("local-1")})
    assert where(lab.place(shop, *replicas, member("b", "b", spec=using("local-2")))) == {
        "a-0": "n1",
        "a-1": "n1",
        "b": "n2",
    }


def test_one_of_each_goes_where_volumes_are_large_enough_for_all(lab: Lab) -> None:
    """Three volumes on n1, one of them large, and a large one on n2."""
    for name, size in (("n1-a", "1Gi"), ("n1-b", "1Gi"), ("n1-c", "2Gi"), ("n2-a", "2Gi")):
        lab.cache.update_storage(volume(name, size, zone=name[:2], storageClassName="local"))
    for name, size in (("large-1", "2Gi"), ("large-2", "2Gi"), ("small", "1Gi")):
        lab.cache.update_storage(claim(name, size, storageClassName="local"))
    shop = lab.group(group_object("shop", *chain("a", "b")))
    pods = member("a", "a", spec=using("large-1")), member("b", "b", spec=using("large-2", "small"))
    assert where(lab.place(shop, *pods)) == {"a": "n2", "b": "n1"}


@pytest.fixture
def racks() -> Lab:
    """Four nodes in two zones, with claims for each of six pods."""
    zones = {"n1": "z1", "n2": "z1", "n3": "z2", "n4": "z2"}
    made = Lab([zoned(name, zone) for name, zone in zones.items()])
    made.cache.update_storage(storage_class())
    for number in range(6):
        made.cache.update_storage(claim(f"own-{number}"))
    return made


def attach(lab: Lab, **limits: int) -> None:
    for name, limit in limits.items():
        lab.cache.update_storage(csi_node(name, limit=limit))


def own(count: int, workload: str, first: int = 0) -> list[Pod]:
    """Pods with a claim of their own each."""
    return [member(f"{workload}-{n}", workload, spec=using(f"own-{n}")) for n in range(first, first + count)]


def test_replicas_go_where_all_of_their_volumes_can_be_attached(racks: Lab) -> None:
    """Two nodes of one zone attach three volumes, those of the other five."""
    attach(racks, n1=2, n2=1, n3=3, n4=2)
    shop = racks.group(group_object("shop", *chain("a", "b", maxNetworkCost=1)))
    chosen = where(racks.place(shop, *own(5, "a"), member("b-0", "b")))
    assert sorted(node for name, node in chosen.items() if name[0] == "a") == ["n3", "n3", "n3", "n4", "n4"]
    assert chosen["b-0"] in ("n3", "n4")


def test_one_replica_each_goes_where_all_of_their_volumes_can_be_attached(racks: Lab) -> None:
    attach(racks, n1=1, n2=1, n3=3, n4=1)
    shop = racks.group(group_object("shop", *chain("a", "b", "c")))
    pods = [*own(1, "a"), *own(1, "b", 1), *own(1, "c", 2)]
    assert set(where(racks.place(shop, *pods)).values()) == {"n3"}


def test_a_volume_that_replicas_share_is_attached_once(racks: Lab) -> None:
    attach(racks, n1=1, n2=0, n3=0, n4=0)
    racks.cache.update_storage(claim("shared", bound_to="v"))
    racks.cache.update_storage(volume("v", for_claim="shared"))
    shop = racks.group(group_object("shop", *chain("a", "b")))
    pods = [member(f"a-{number}", "a", spec=using("shared")) for number in range(3)]
    chosen = where(racks.place(shop, *pods, member("b", "b")))
    assert {chosen[pod.metadata.name] for pod in pods} == {"n1"}


def test_replicas_of_one_claim_are_not_spread_to_where_it_cannot_follow(racks: Lab) -> None:
    """Its volume is provisioned for the first. Three nodes have room for two replicas each, the last for three."""
    for name, zone in (("n1", "z1"), ("n2", "z1"), ("n3", "z2")):
        racks.cache.update_node(zoned(name, zone, cpu=2))
    racks.cache.update_node(zoned("n4", "z2", cpu=3))
    shop = racks.group(group_object("shop", *chain("a", "b")))
    pods = [member(f"a-{number}", "a", cpu="1", spec=using("own-0")) for number in range(3)]
    chosen = where(racks.place(shop, *pods, member("b", "b", cpu="1")))
    assert {chosen.get(pod.metadata.name) for pod in pods} == {"n4"}


def test_pods_of_one_claim_go_where_its_volume_is(lab: Lab) -> None:
    """Each node has a volume, and room for all three pods of the claim is on n2 alone."""
    for name, cpu in (("n1", 2), ("n2", 3), ("n3", 2)):
        lab.cache.update_node(zoned(name, "z2" if name == "n2" else "z1", cpu=cpu, labels={"zone": name}))
    offer(lab, "n1", "n2", "n3")
    shop = lab.group(group_object("shop", *chain("a", "b")))
    pods = [member(f"{'aab'[n]}-{n}", "aab"[n], cpu="1", spec=using("local-1")) for n in range(3)]
    chosen = where(lab.place(shop, *pods, member("b", "b", cpu="1")))
    assert [chosen.get(pod.metadata.name) for pod in pods] == ["n2", "n2", "n2"]


class TestPlansMadeAnew:
    """All or nothing, where the first plan finds fewer volumes on its nodes than it thought."""

    def test_nodes_share_volumes(self) -> None:
        """Two volumes of two nodes, which count for each of them; a third node, where calls are too far, has one."""
        lab = Lab([zoned(f"n{n}", "z1" if n < 2 else "z2", cpu=3, labels={"area": "ab"[n // 2]}) for n in range(4)])
        lab.cache.update_storage(storage_class("local", provisioner="kubernetes.io/no-provisioner"))
        for number, area in enumerate("aabbb"):
            term = {"matchExpressions": [{"key": "area", "operator": "In", "values": [area]}]}
            reach = {"required": {"nodeSelectorTerms": [term]}}
            lab.cache.update_storage(volume(f"v{number}", storageClassName="local", nodeAffinity=reach))
        for number in range(3):
            lab.cache.update_storage(claim(f"local-{number}", storageClassName="local"))
        shop = lab.group(group_object("shop", *chain("a", "b", maxNetworkCost=1)))
        pods = [member(f"a-{number}", "a", cpu="1", spec=using(f"local-{number}")) for number in range(3)]
        chosen = where(lab.place(shop, *pods, member("b", "b", cpu="1")))
        assert len(chosen) == 4
        assert set(chosen.values()) <= {"n2", "n3"}

    def test_pods_share_a_volume_that_takes_one_of_what_the_node_attaches(self, racks: Lab) -> None:
        attach(racks, n1=2, n2=2, n3=0, n4=3)
        shop = racks.group(group_object("shop", *chain("a", "b")))
        pods = [member(f"a-{n}", "a", spec=using("own-5", *([f"own-{n}"] if n else []))) for n in range(3)]
        assert set(where(racks.place(shop, *pods, member("b", "b"))).values()) == {"n4"}

    def test_volumes_have_labels(self, lab: Lab) -> None:
        """Two pods want 2 GiB with the label y, of which n2 has one volume and n1 another."""
        stock = {"n3-a": "1 y", "n2-a": "2 x", "n2-b": "1 y", "n2-c": "2 y", "n1-a": "2 x", "n1-b": "2 y"}
        for name, what in stock.items():
            size, tier = what.split()
            made = volume(name, f"{size}Gi", zone=name[:2], labels={"tier": tier}, storageClassName="local")
            lab.cache.update_storage(made)
        wanted = {0: ("2Gi", {}), 1: ("2Gi", {"tier": "y"}), 2: ("1Gi", {}), 3: ("2Gi", {"tier": "y"})}
        for number, (size, labels) in wanted.items():
            selector: dict[str, Any] = {"selector": {"matchLabels": labels}} if labels else {}
            lab.cache.update_storage(claim(f"c-{number}", size, storageClassName="local", **selector))
        shop = lab.group(group_object("shop", *chain("a", "b")))
        pods = [member(f"{'aabb'[n]}-{n}", "aabb"[n], cpu="1", spec=using(f"c-{n}")) for n in range(4)]
        chosen = where(lab.place(shop, *pods))
        assert len(chosen) == 4
        assert {chosen["a-1"], chosen["b-3"]} == {"n1", "n2"}

    def test_what_does_not_fit_anew_has_no_node(self, racks: Lab) -> None:
        attach(racks, n1=2, n2=2, n3=2, n4=2)
        shop = racks.group(group_object("shop", *chain("a", "b")))
        pods = [member(f"a-{n}", "a", spec=using("own-5", *([f"own-{n}"] if n else []))) for n in range(3)]
        outcome = racks.place(shop, *pods, member("b", "b"))
        assert outcome.decisions == ()
        assert racks.cache.state.pod_count == 0
        assert not racks.cache.state.volumes.reserved


def test_who_finds_fewer_volumes_takes_one_first(lab: Lab) -> None:
    """Two volumes on each node: who takes any leaves the one with the label to who asks for it."""
    for name, tier in (("n2-a", "x"), ("n2-b", "y")):
        lab.cache.update_storage(volume(name, zone="n2", labels={"tier": tier}, storageClassName="local"))
    wanted = claim("local-2", storageClassName="local", selector={"matchLabels": {"tier": "x"}})
    lab.cache.update_storage(wanted)
    shop = lab.group(group_object("shop", *chain("a", "b")))
    pods = [member("a-1", "a", spec=using("local-1")), member("b-2", "b", spec=using("local-2"))]
    assert where(lab.place(shop, *pods)) == {"a-1": "n2", "b-2": "n2"}
    assert lab.cache.state.volumes.reserved == {"n2-b": "default/local-1", "n2-a": "default/local-2"}


def test_who_is_where_fewer_volumes_are_takes_one_first(lab: Lab) -> None:
    """Those on n2 would take the volume that n1 reaches as well, and there is none but that on n1."""
    for name, zone in (("shared", ""), ("n2-a", "n2"), ("n2-b", "n2")):
        lab.cache.update_storage(volume(name, zone=zone, storageClassName="local"))
    shop = lab.group(group_object("shop", *chain("a", "b")))
    nodes = {"a-1": "n2", "a-2": "n2", "b-3": "n1"}
    pods = [
        member(name, name[0], spec=using(f"local-{name[-1]}") | {"nodeSelector": {"zone": node}})
        for name, node in nodes.items()
    ]
    assert where(lab.place(shop, *pods)) == nodes
