"""LatencyPolicy: how near a workload has to be to its users, ``berth.dev/v1alpha1``, namespaced.

The spec says what is wanted. The status is all that the latency controller knows: another one goes on from it.
So times in it are whole seconds and round trips whole microseconds, as they are written; users are keyed hashes.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final

from pydantic import ConfigDict, Field

from berth.api import rules
from berth.api.base import ApiModel, ApiObject, Int32, Int64, Timestamp
from berth.api.conditions import Condition
from berth.api.labels import BERTH_GROUP
from berth.api.latency_exchange import IdentitySource

API_VERSION: Final = f"{BERTH_GROUP}/v1alpha1"
"""``apiVersion`` of every LatencyPolicy."""
KIND: Final = "LatencyPolicy"
"""``kind`` of every LatencyPolicy."""
PLURAL: Final = "latencypolicies"
"""Resource name in API paths."""

MAX_NODES: Final = 256
"""Nodes that a status tells of at most."""
MAX_MOVES: Final = 64
"""Moves that a status tells of at most, and so the most in an hour."""
MAX_ASSOCIATIONS: Final = 1000
"""Users with a node of their own at most."""
MAX_PODS: Final = 32
"""Pods that are placed for users at most."""
MAX_MICROSECONDS: Final = 60_000_000
"""Greatest round trip that is stated; a request has failed long before."""
CONDITION_WORKING: Final = "Working"
"""Condition: whether the policy can be carried out."""
CONDITION_WITHIN_LIMITS: Final = "WithinLimits"
"""Condition: whether users have what the policy asks for."""
CONDITION_MOVING: Final = "Moving"
"""Condition: whether pods move, and what keeps them."""
MANAGER: Final = "berth-latency"
"""Field manager of the status."""
_MAX_NAME: Final = 253
_MAX_HASH: Final = 64

Milliseconds = Annotated[int, Field(ge=1, le=60_000, json_schema_extra={"format": "int32"})]
"""A limit of latency in milliseconds."""
Microseconds = Annotated[int, Field(ge=1, le=MAX_MICROSECONDS, json_schema_extra={"format": "int64"})]
"""A round trip in microseconds."""


class Objective(StrEnum):
    """What pods move for."""

    CONSTRAINTS = "Constraints"
    """to be within the limits, and no further"""
    MINIMUM = "Minimum"
    """to be as near as possible"""


class Exploration(StrEnum):
    """How nodes become known without a pod of the workload."""

    REVERSE_PROBE = "ReverseProbe"
    """agents on the nodes measure the round trip to a user's address"""
    STEER = "Steer"
    """the router sends requests of the user through a node, while the pod stays"""
    MIGRATE = "Migrate"
    """a pod goes there"""


class Sharing(StrEnum):
    """Which nodes are about as far from every user as each other."""

    NODE = "Node"
    """each is measured by itself; a cluster that Liqo joined is one node"""
    ZONE = "Zone"
    """those of one zone count as one"""


class UserMode(StrEnum):
    """Whose latency counts."""

    SINGLE = "Single"
    """all users as if they were one"""
    PER_USER = "PerUser"
    """each user's, who is routed to the pod that is near"""


class Target(ApiModel):
    """The workload, in the policy's namespace."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                {
                    "rule": "(!has(self.kind) || self.kind == 'Deployment') && "
                    "(!has(self.apiVersion) || self.apiVersion == 'apps/v1')",
                    "message": "only a Deployment of apps/v1 can be moved: a DaemonSet has a pod on each node, and a "
                    "pod of a StatefulSet has to go before its successor comes",
                }
            ]
        }
    )

    api_version: str = Field(
        default="apps/v1", min_length=1, max_length=_MAX_NAME, description="Group and version of the workload: apps/v1."
    )
    kind: str = Field(
        default="Deployment", min_length=1, max_length=63, description="Kind of the workload: a Deployment."
    )
    name: str = Field(min_length=1, max_length=_MAX_NAME, description="Name of the workload.")


class UserIdentity(ApiModel):
    """How users are told from each other; only a keyed hash of it leaves a meter."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                {
                    "rule": "!has(self.source) || self.source == 'Address' || has(self.name)",
                    "message": "the name of the header, cookie or query parameter is missing; write name",
                }
            ]
        }
    )

    source: IdentitySource = Field(
        default=IdentitySource.ADDRESS,
        description=(
            "Address: where the connection comes from. Header, Cookie, Query: that of the request, of the given name; "
            "requests without it count by their address. Unset: Address."
        ),
    )
    name: str | None = Field(
        default=None, min_length=1, max_length=_MAX_NAME, description="Name of the header, cookie or query parameter."
    )


class Users(ApiModel):
    """Whose latency counts, and for how long."""

    mode: UserMode = Field(
        default=UserMode.SINGLE,
        description=(
            "Single: all users count as one. PerUser: each counts, and is routed to the nearest pod. Unset: Single."
        ),
    )
    identity: UserIdentity = Field(
        default=UserIdentity(), description="How users are told from each other. Unset: by their addresses."
    )
    expiry_seconds: Int32 = Field(
        default=300, ge=1, le=86_400, description="How long a user counts after the last request, in seconds."
    )
    min_replicas: Int32 = Field(
        default=1, ge=1, le=MAX_PODS, description="Pods at least, where maxReplicas lets their number follow the users."
    )
    max_replicas: Int32 | None = Field(
        default=None,
        ge=1,
        le=MAX_PODS,
        description="Pods at most, where their number follows the users. Unset: it is left as it is.",
    )


class Moves(ApiModel):
    """What moving may cost."""

    max_concurrent: Int32 = Field(
        default=1, ge=1, le=MAX_PODS, description="Pods that are created before others go, at once, at most."
    )
    max_per_hour: Int32 = Field(
        default=12, ge=0, le=MAX_MOVES, description="Moves that begin within an hour at most; 0: nothing moves."
    )
    cool_down_seconds: Int32 = Field(
        default=60,
        ge=0,
        le=86_400,
        description="How long after a move the next one waits, in seconds, unless a pod is beyond a limit.",
    )
    min_improvement_percent: Int32 = Field(
        default=10, ge=0, le=99, description="By how much the latency has to fall where no limit is broken, in percent."
    )
    dry_run: bool = Field(default=False, description="Decide and tell, and move nothing.")


class LatencyPolicySpec(ApiModel):
    """What is wanted."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                {
                    "rule": "!has(self.hardMaxLatency) || !has(self.softMaxLatency) || "
                    "self.softMaxLatency <= self.hardMaxLatency",
                    "message": "softMaxLatency is above hardMaxLatency; write a soft limit that is no higher",
                },
                {
                    "rule": "(has(self.objective) && self.objective == 'Minimum') || has(self.hardMaxLatency) || "
                    "has(self.softMaxLatency)",
                    "message": "there is no limit to keep to; write hardMaxLatency or softMaxLatency in milliseconds, "
                    "or objective: Minimum",
                },
            ]
        }
    )

    target_ref: Target = Field(description="Workload that is placed near its users.")
    hard_max_latency: Milliseconds | None = Field(
        default=None, description="Round trip in milliseconds beyond which a node is invalid. Unset: none is."
    )
    soft_max_latency: Milliseconds | None = Field(
        default=None, description="Round trip in milliseconds that a node should not exceed. Unset: as the hard limit."
    )
    objective: Objective = Field(
        default=Objective.CONSTRAINTS,
        description=(
            "What pods move for. Constraints: to be within the limits. Minimum: to be as near as possible. Unset: "
            "Constraints."
        ),
    )
    users: Users = Field(default=Users(), description="Whose latency counts. Unset: all users as if they were one.")
    exploration: tuple[Exploration, ...] = Field(
        default=tuple(Exploration),
        max_length=len(Exploration),
        description=(
            "How nodes become known without a pod of the workload. ReverseProbe: their agents measure the round trip "
            "to users' addresses; where it is left out, no address is told to anybody. Steer: requests go through "
            "them. Migrate: a pod goes there. Unset: all three, what costs least first."
        ),
        json_schema_extra={"x-kubernetes-list-type": "set"},
    )
    moves: Moves = Field(default=Moves(), description="What moving may cost.")
    sharing: Sharing = Field(
        default=Sharing.NODE,
        description=(
            "Which nodes share what is measured. Node: each is measured by itself. Zone: those of one zone count as "
            "one, and no pod moves within it. Unset: Node."
        ),
    )
    min_samples: Int32 = Field(
        default=1, ge=1, le=15, description="Round trips that a node needs before anything is concluded from them."
    )


class NodeState(StrEnum):
    """What a node is to the users of a policy."""

    UNKNOWN = "Unknown"
    """not measured, or not often enough"""
    INVALID = "Invalid"
    """beyond the hard limit"""
    HARD_VALID = "HardValid"
    """within the hard limit alone"""
    SOFT_VALID = "SoftValid"
    """within both"""


class MeasurementSource(StrEnum):
    """Who measured a round trip."""

    METER = "Meter"
    """the latency meter beside a pod, of requests that it served"""
    PROBE = "Probe"
    """the node's agent, to the user's address"""
    ROUTER = "Router"
    """the router, of requests that it sent through the node"""


class NodeStatus(ApiModel):
    """What is known of a node."""

    node: str = Field(min_length=1, max_length=_MAX_NAME, description="Name of the node.")
    state: NodeState = Field(
        default=NodeState.UNKNOWN,
        description=(
            "Unknown: not measured. Invalid: beyond the hard limit. HardValid: within it. SoftValid: within both."
        ),
    )
    source: MeasurementSource | None = Field(
        default=None,
        description=(
            "Who measured. Meter: the latency meter, of requests served there. Probe: the node's agent. Router: the "
            "router, of requests sent through the node. Unset: nobody."
        ),
    )
    p50_microseconds: Microseconds | None = Field(default=None, description="Median of the round trips.")
    p90_microseconds: Microseconds | None = Field(default=None, description="90th percentile of the round trips.")
    samples: Int32 = Field(default=0, ge=0, description="Round trips behind these.")
    time: Timestamp | None = Field(default=None, description="When the last of them was measured.")
    rejections: Int32 = Field(default=0, ge=0, description="How often a move there did not give what it promised.")
    rejected_until: Timestamp | None = Field(default=None, description="Until when no pod moves there because of that.")


class Outcome(StrEnum):
    """How far a move is, or how it ended."""

    CREATING = "Creating"
    """the new pod is awaited"""
    TRYING = "Trying"
    """the new pod is ready, and it is awaited how far its node is, which nobody knew"""
    EVICTING = "Evicting"
    """the new pod is ready, and the old one has to go"""
    MOVED = "Moved"
    """the old pod is gone; what it gained is not measured yet"""
    CONFIRMED = "Confirmed"
    """it gained what it promised"""
    DISAPPOINTED = "Disappointed"
    """it did not; the node is remembered"""
    CANCELLED = "Cancelled"
    """given up before anything was evicted"""


class Move(ApiModel):
    """A pod that goes to another node."""

    pod: str = Field(min_length=1, max_length=_MAX_NAME, description="Pod that is replaced.")
    source_node: str = Field(min_length=1, max_length=_MAX_NAME, description="Node that it leaves.")
    target_node: str = Field(min_length=1, max_length=_MAX_NAME, description="Node of the pod that replaces it.")
    reason: str = Field(min_length=1, max_length=64, description="Why, as one word in CamelCase.")
    outcome: Outcome = Field(
        description=(
            "How far it is: Creating, Trying, Evicting, Moved; or how it ended: Confirmed, Disappointed, Cancelled."
        )
    )
    start_time: Timestamp = Field(description="When the new pod was asked for.")
    ready_time: Timestamp | None = Field(default=None, description="When the new pod was ready.")
    before_microseconds: Microseconds | None = Field(default=None, description="Median on the old node when it began.")
    expected_microseconds: Microseconds | None = Field(
        default=None, description="Median expected on the new node. Unset: it was not known."
    )
    after_microseconds: Microseconds | None = Field(
        default=None, description="Median on the new node afterwards. Unset: not measured yet."
    )


class Association(ApiModel):
    """A user and the node that serves it."""

    user: str = Field(min_length=1, max_length=_MAX_HASH, description="Keyed hash of the user's identity.")
    node: str = Field(min_length=1, max_length=_MAX_NAME, description="Node of the pod that serves the user.")
    last_seen_time: Timestamp = Field(description="When the user was last heard of.")


class Surge(ApiModel):
    """A workload has more replicas than it should have, while its pods move."""

    replicas: Int32 = Field(ge=0, description="Replicas that there should be.")
    previous: Int32 = Field(ge=0, description="Replicas before the last change.")
    wanted: Int32 = Field(ge=0, description="Replicas after it.")
    seen: bool = Field(
        default=False, description="Whether the change was seen: another number after it is somebody else's, and stays."
    )


class LatencyPolicyStatus(ApiModel):
    """All that is known and was done."""

    observed_generation: Int64 | None = Field(
        default=None, ge=0, description="Generation of the spec that it is about."
    )
    nodes: tuple[NodeStatus, ...] = Field(
        default=(),
        max_length=MAX_NODES,
        description="What is known of nodes.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["node"]},
    )
    probed_time: Timestamp | None = Field(default=None, description="When agents were last asked to measure.")
    unreachable_time: Timestamp | None = Field(
        default=None,
        description="When agents last found that users do not answer them. Unset: they do, or nobody asked.",
    )
    moves: tuple[Move, ...] = Field(
        default=(),
        max_length=MAX_MOVES,
        description="The last moves, in the order in which they began.",
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )
    plan: tuple[Annotated[str, Field(max_length=_MAX_NAME, description="Name of a node.")], ...] = Field(
        default=(),
        max_length=MAX_PODS,
        description="Nodes that pods are on their way to, where each user counts.",
        json_schema_extra={"x-kubernetes-list-type": "set"},
    )
    associations: tuple[Association, ...] = Field(
        default=(),
        max_length=MAX_ASSOCIATIONS,
        description="Users and the nodes that serve them.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["user"]},
    )
    surge: Surge | None = Field(
        default=None, description="Replicas beyond those that there should be. Unset: there are none."
    )
    state: str | None = Field(
        default=None, max_length=_MAX_NAME, description="States of the nodes that pods are on, worst first."
    )
    p50: str | None = Field(
        default=None, max_length=_MAX_NAME, description="Median round trip of the farthest of these nodes."
    )
    moves_last_hour: Int32 | None = Field(default=None, ge=0, description="Moves that began within the last hour.")
    conditions: tuple[Condition, ...] = Field(
        default=(),
        description="What is right and what is not.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    )


class LatencyPolicy(ApiObject):
    """How near a workload has to be to its users, and what is done for it."""

    api_version: str = Field(default=API_VERSION, description=rules.API_VERSION_DESCRIPTION)
    kind: str = Field(default=KIND, description=rules.KIND_DESCRIPTION)
    spec: LatencyPolicySpec = Field(description="What is wanted.")
    status: LatencyPolicyStatus = Field(
        default=LatencyPolicyStatus(), description="What is known and was done; the latency controller writes it."
    )
