"""Which pods are to have which CPUs: the assignments of a SocketStatus, held against pods and sockets. No I/O.

Nothing that people wrote keeps other pods from being pinned: what makes no sense is left out and told, with object,
field and remedy.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from agents.node.pinning.division import Division, Part, Tenant, divide
from agents.node.pinning.pod_cpus import MILLI, PodCpus, cpus_of
from agents.node.topology.machine import Machine, Socket
from berth.api.cpulist import format_cpulist
from berth.api.errors import FieldPath, explain_validation_error, field_path
from berth.api.interference import InterferenceClass, stated_class
from berth.api.labels import LABEL_INTERFERENCE_CLASS
from berth.api.socketstatus import KIND, Assignment
from berth.kube.objects import Pod

_MIRROR: Final = "kubernetes.io/config.mirror"
PATIENCE_SECONDS: Final = 30.0
"""How long a problem that may pass has to last before people are told."""
_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)
_HASH: Final = "kubernetes.io/config.hash"
_HASH_FORM: Final = re.compile("[0-9a-f]{32}")


class Problem(NamedTuple):
    """Something that people wrote and that cannot be done."""

    subject: str
    """the object, such as ``Pod shop/web-1``"""
    text: str
    """field, what is wrong with it, what becomes of it, and what to write instead"""
    may_pass: bool = False
    """whether it may be so for a moment although everything is right"""

    def __str__(self) -> str:
        """Return both."""
        return f"{self.subject}: {self.text}"


class Patience:
    """Holds problems back that may pass: a pod is assigned before its node hears of it, and goes before that ends."""

    def __init__(self, seconds: float) -> None:
        """Begin without problems; `seconds` is how long one has to last."""
        self._seconds = seconds
        self._since: dict[Problem, float] = {}

    def lasting(self, problems: Iterable[Problem], now: float) -> tuple[Problem, ...]:
        """Return those that do not pass, and those that have lasted; `now` is in monotonic seconds."""
        found = tuple(problems)
        self._since = {problem: self._since.get(problem, now) for problem in found if problem.may_pass}
        return tuple(each for each in found if now - self._since.get(each, -math.inf) >= self._seconds)


class Stated(NamedTuple):
    """An assignment, and where it stands."""

    assignment: Assignment
    """the assignment"""
    path: FieldPath
    """field that it is in"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodWish:
    """A pod of the node that has a class, and where it is to run."""

    uid: str
    """UID that the API server knows it by"""
    runtime_uid: str
    """UID that the container runtime knows it by: of a static pod the hash of its configuration"""
    namespace: str
    """its namespace"""
    name: str
    """its name"""
    interference_class: InterferenceClass | None
    """its class; None: it has an assignment and no class, and is left alone"""
    socket: int | None = None
    """socket that it is to be on; None: none, it is left alone"""
    cpus: frozenset[int] = frozenset()
    """CPUs of that socket, or of the part of it that is the pod's"""
    socket_cpus: frozenset[int] = frozenset()
    """CPUs of that socket"""
    cache: int | None = None
    """place of the cache that it is kept to, among those of the socket; None: it may use all of them"""
    least: int = 0
    """thousandths of a CPU of its part that it has to have, or it has no part; 0 where it has all of the socket"""
    mems: frozenset[int] = frozenset()
    """NUMA nodes of that socket; empty: it keeps those that it has"""
    running: bool = False
    """whether the API server says that it runs and is not to end"""
    containers: int = 0
    """containers that run in it while none has ended"""

    def within(self, allowed: frozenset[int]) -> frozenset[int]:
        """Return its CPUs where its cgroup lets it have some alone: a part of which it may not have enough is none."""
        own = self.cpus & allowed
        enough = own == self.cpus or (own and MILLI * len(own) >= self.least)
        return self.cpus if enough else self.socket_cpus or self.cpus


class Wanted(NamedTuple):
    """What is to be on a node."""

    pods: tuple[PodWish, ...]
    """pods with a class or an assignment"""
    problems: tuple[Problem, ...]
    """what cannot be done"""


def read_assignments(spec: Mapping[str, Any], node: str) -> tuple[tuple[Stated, ...], tuple[Problem, ...]]:
    """Return the assignments of a SocketStatus' spec, each read by itself, and those that cannot be read."""
    subject = f"{KIND} {node}"
    items = spec.get("assignments") or []
    if not isinstance(items, list):
        return (), (Problem(subject, "spec.assignments: must be a list; nothing is pinned by it; write a list"),)
    read: list[Stated] = []
    problems: list[Problem] = []
    for index, item in enumerate(items):
        path: FieldPath = ("spec", "assignments", index)
        try:
            read.append(Stated(Assignment.model_validate(item), path))
        except ValidationError as error:
            problems.extend(
                Problem(subject, f"{field_path((*path, *found.path))}: {found.text}")
                for found in explain_validation_error(error)
            )
    return tuple(read), tuple(problems)


def wanted(
    assignments: Iterable[Stated],
    pods: Iterable[Pod],
    machine: Machine,
    *,
    node: str,
    key: str = LABEL_INTERFERENCE_CLASS,
    profiled: Callable[[Pod], InterferenceClass | None] = lambda _: None,
    memory: bool = False,
    division: Division = Division.CORES,
    before: Mapping[str, frozenset[int]] = MappingProxyType({}),
) -> Wanted:
    """Return what is to be on a node.

    Args:
        assignments: what its SocketStatus asks for.
        pods: the node's pods.
        machine: its sockets; none that is named is known of it if they cannot be told.
        node: its name.
        key: label with the class of a pod.
        profiled: class that a WorkloadProfile states of a pod; it counts for one whose label states none.
        memory: whether pods are to use memory of their socket's NUMA nodes alone.
        division: how far a socket is divided among its pods.
        before: CPUs of a cache, or some of them, that a pod was kept to, by UID.
    """
    subject = f"{KIND} {node}"
    known = {pod.metadata.uid: pod for pod in pods}
    stated = {uid: stated_class(pod.metadata.labels, key) for uid, pod in known.items()}
    letters = {uid: stated[uid].interference_class or profiled(pod) for uid, pod in known.items()}
    runtime_uids, disbelieved = _runtime_uids([pod for pod in known.values() if not pod.finished])
    sockets = {socket.number: socket for socket in machine.sockets}
    problems: list[Problem] = []
    chosen: dict[str, Socket | None] = {}
    for assignment, path in assignments:
        pod = known.get(assignment.uid)
        socket = sockets.get(assignment.socket)
        field, text = path, ""
        absent = pod is None or pod.key != f"{assignment.namespace}/{assignment.name}"
        if pod is None or pod.key != f"{assignment.namespace}/{assignment.name}":
            field = (*path, "uid")
            text = f"no pod {assignment.namespace}/{assignment.name} with UID {assignment.uid} on this node; the "
            text += "assignment counts for nothing; remove it, or give it the UID of the pod"
        elif assignment.uid in chosen:
            text = f"pod {pod.key} is assigned twice; the first counts; remove this one"
        elif socket is None:
            field = (*path, "socket")
            text = f"{node} has no socket {assignment.socket}, it has {format_cpulist(sockets)}; pod {pod.key} is "
            text += "left alone; assign it to one of these"
        elif not pod.finished and letters[assignment.uid] is None:
            text = f"pod {pod.key} has no interference class and is left alone; give it the label {key}, or its "
            text += "workload a WorkloadProfile, or remove the assignment"
        if text:
            problems.append(Problem(subject, f"{field_path(field)}: {text}", may_pass=absent))
        if pod is not None and pod.key == f"{assignment.namespace}/{assignment.name}":
            chosen.setdefault(assignment.uid, socket)
    needs = {uid: cpus_of(known[uid]) for uid in chosen}
    parts = _parts(assignments, chosen, known, letters, needs, machine, division, before)
    found: list[PodWish] = []
    for uid, pod in known.items():
        if pod.finished:
            continue
        if (problem := stated[uid].problem) is not None:
            problems.append(Problem(f"Pod {pod.key}", str(problem)))
        if letters[uid] is not None or uid in chosen:
            problems.extend(disbelieved.get(uid, ()))
            wish = _wish(pod, runtime_uids[uid], letters[uid], chosen.get(uid), parts.get(uid), machine, memory)
            parted = wish.cpus != wish.socket_cpus
            found.append(replace(wish, least=needs[uid].least) if parted else wish)
    return Wanted(tuple(found), tuple(problems))


def _runtime_uids(pods: list[Pod]) -> tuple[dict[str, str], dict[str, list[Problem]]]:
    """UIDs that the runtime knows pods by, and which of them say of themselves what is not believed, both by UID.

    Anybody who makes pods can have one say that it is the mirror of a static pod, with the UID of another one's pod as
    its hash: that one would be pinned or let go.
    """
    found = {pod.metadata.uid: pod.metadata.uid for pod in pods}
    problems: dict[str, list[Problem]] = {}
    first: dict[str, Pod] = {}
    for pod in sorted(pods, key=lambda pod: (pod.metadata.creation_timestamp, pod.key)):
        annotations = pod.metadata.annotations
        if _MIRROR not in annotations or _HASH not in annotations:
            continue
        stated = annotations[_HASH]
        if not _HASH_FORM.fullmatch(stated) or stated in found:
            text = f"{stated[:64]!r} is no hash of a static pod's configuration"
        elif stated in first:
            text = f"pod {first[stated].key}, which was made before, has the same hash"
        else:
            first[stated] = pod
            found[pod.metadata.uid] = stated
            continue
        text = f"metadata.annotations.{_HASH}: {text}; the pod is taken for none that is static; remove the annotation"
        problems[pod.metadata.uid] = [Problem(f"Pod {pod.key}", text)]
    return found, problems


def _wish(
    pod: Pod,
    runtime_uid: str,
    interference_class: InterferenceClass | None,
    socket: Socket | None,
    part: Part | None,
    machine: Machine,
    memory: bool,
) -> PodWish:
    # Without a class it is left alone, whatever is asked for.
    chosen = socket if interference_class is not None else None
    return PodWish(
        uid=pod.metadata.uid,
        runtime_uid=runtime_uid,
        namespace=pod.metadata.namespace,
        name=pod.metadata.name,
        interference_class=interference_class,
        socket=chosen.number if chosen else None,
        cpus=part.cpus if part else frozenset(),
        socket_cpus=chosen.cpus if chosen else frozenset(),
        cache=part.cache if part else None,
        mems=_near(machine, chosen) if chosen and memory else frozenset(),
        running=pod.status.phase == "Running" and pod.metadata.deletion_timestamp is None,
        containers=len(pod.spec.containers) + sum(each.restart_policy == "Always" for each in pod.spec.init_containers),
    )


def _parts(
    assignments: Iterable[Stated],
    chosen: Mapping[str, Socket | None],
    pods: Mapping[str, Pod],
    letters: Mapping[str, InterferenceClass | None],
    needs: Mapping[str, PodCpus],
    machine: Machine,
    division: Division,
    before: Mapping[str, frozenset[int]],
) -> dict[str, Part]:
    """What each pod has of its socket, by UID; those that were assigned first come first."""
    since = {assignment.uid: assignment.time or _LONG_AGO for assignment, _ in assignments}
    tenants: dict[Socket, list[Tenant]] = {}
    for uid in sorted(chosen, key=lambda uid: (since[uid], uid)):
        socket, letter = chosen[uid], letters[uid]
        if socket is not None and letter is not None and not pods[uid].finished:
            tenants.setdefault(socket, []).append(Tenant(uid, letter, *needs[uid]))
    found: dict[str, Part] = {}
    for socket, there in tenants.items():
        found |= divide(machine, socket, there, division, before)
    return found


def _near(machine: Machine, socket: Socket) -> frozenset[int]:
    return frozenset(node.number for node in machine.numa_nodes if node.cpus & socket.cpus)
