"""LatencyPolicy: how near a workload has to be to its users, ``berth.dev/v1alpha1``, namespaced.

The spec says what is wanted; the status, in a module of its own, what is known and was done.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from pydantic import ConfigDict, Field, JsonValue

from berth.api import rules
from berth.api.base import ApiModel, ApiObject, Int32
from berth.api.labels import ANNOTATION_HARD_MAX_LATENCY, ANNOTATION_SOFT_MAX_LATENCY, BERTH_GROUP
from berth.api.latency_exchange import HEADER_NAME, IdentitySource
from berth.api.latencypolicy_status import CONDITION_MOVING as CONDITION_MOVING
from berth.api.latencypolicy_status import CONDITION_WITHIN_LIMITS as CONDITION_WITHIN_LIMITS
from berth.api.latencypolicy_status import CONDITION_WORKING as CONDITION_WORKING
from berth.api.latencypolicy_status import MANAGER as MANAGER
from berth.api.latencypolicy_status import MAX_ASSOCIATIONS as MAX_ASSOCIATIONS
from berth.api.latencypolicy_status import MAX_HASH as MAX_HASH
from berth.api.latencypolicy_status import MAX_MICROSECONDS as MAX_MICROSECONDS
from berth.api.latencypolicy_status import MAX_MOVES as MAX_MOVES
from berth.api.latencypolicy_status import MAX_NODES as MAX_NODES
from berth.api.latencypolicy_status import MAX_PODS as MAX_PODS
from berth.api.latencypolicy_status import AnnotatedLimits as AnnotatedLimits
from berth.api.latencypolicy_status import Association as Association
from berth.api.latencypolicy_status import LatencyPolicyStatus as LatencyPolicyStatus
from berth.api.latencypolicy_status import MeasurementSource as MeasurementSource
from berth.api.latencypolicy_status import Microseconds as Microseconds
from berth.api.latencypolicy_status import Milliseconds as Milliseconds
from berth.api.latencypolicy_status import Move as Move
from berth.api.latencypolicy_status import NodeState as NodeState
from berth.api.latencypolicy_status import NodeStatus as NodeStatus
from berth.api.latencypolicy_status import Outcome as Outcome
from berth.api.latencypolicy_status import PublishedRule as PublishedRule
from berth.api.latencypolicy_status import Search as Search
from berth.api.latencypolicy_status import Surge as Surge
from berth.api.latencypolicy_status import VisitedNode as VisitedNode

API_VERSION: Final = f"{BERTH_GROUP}/v1alpha1"
"""``apiVersion`` of every LatencyPolicy."""
KIND: Final = "LatencyPolicy"
"""``kind`` of every LatencyPolicy."""
PLURAL: Final = "latencypolicies"
"""Resource name in API paths."""

_MAX_NAME: Final = 253
_HEADER: Final = HEADER_NAME.replace("'", r"\'")
"""As a text in CEL."""
_COOKIE: Final = "^[^;=[:cntrl:] ]([^;=[:cntrl:]]*[^;=[:cntrl:] ])?$"
"""Names of cookies as browsers keep and send them (RFC 6265, 5.2): 'user[id]' too, which PHP writes for an array."""


class Objective(StrEnum):
    """What pods move for."""

    CONSTRAINTS = "Constraints"
    """to be within the limits, and no further"""
    MINIMUM = "Minimum"
    """to be as near as possible"""


class Decisions(StrEnum):
    """How it is decided which pods move where."""

    MEASURED = "Measured"
    """a pod moves to a node that is proven to be better, as soon as one is"""
    PUBLISHED = "Published"
    """as in the thesis: in rounds, by what meters say alone, to the node visited least"""


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


def _only(source: IdentitySource, names: str, words: str) -> JsonValue:
    """A rule: nobody could ever state another name, and all users would count by their addresses without a word."""
    return {
        "rule": f"!has(self.source) || self.source != '{source}' || !has(self.name) || self.name.matches('{names}')",
        "message": f"no {source.lower()} has that name; write one {words}",
    }


class UserIdentity(ApiModel):
    """How users are told from each other; only a keyed hash of it leaves a meter."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                {
                    "rule": "!has(self.source) || self.source == 'Address' || has(self.name)",
                    "message": "the name of the header, cookie or query parameter is missing; write name",
                },
                _only(IdentitySource.HEADER, _HEADER, "of letters, digits and !#$%&'*+-.^_`|~ alone"),
                _only(IdentitySource.COOKIE, _COOKIE, "without ; and =, and without spaces around it"),
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

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                {
                    "rule": "!has(self.minReplicas) || !has(self.maxReplicas) || self.minReplicas <= self.maxReplicas",
                    "message": "minReplicas is above maxReplicas; write a number that is no higher",
                }
            ]
        }
    )

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
        default=300,
        ge=1,
        le=86_400,
        description="How long a user counts after the last request, in seconds. Unset: 300.",
    )
    min_replicas: Int32 = Field(
        default=1,
        ge=1,
        le=MAX_PODS,
        description="Pods at least, where maxReplicas lets their number follow the users. Unset: 1.",
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
        default=1, ge=1, le=MAX_PODS, description="Pods that are created before others go, at once, at most. Unset: 1."
    )
    max_per_hour: Int32 = Field(
        default=12,
        ge=0,
        le=MAX_MOVES,
        description="Moves that begin within an hour at most; 0: nothing moves. Unset: 12.",
    )
    cool_down_seconds: Int32 = Field(
        default=60,
        ge=0,
        le=86_400,
        description="How long after a move the next one waits, in seconds, unless a pod is beyond a limit. Unset: 60.",
    )
    min_improvement_percent: Int32 = Field(
        default=10,
        ge=0,
        le=99,
        description="By how much the latency has to fall where no limit is broken, in percent. Unset: 10.",
    )
    dry_run: bool = Field(
        default=False,
        description=(
            "Decide and tell, and begin no move; one that has begun ends, for there is a pod too many by then. "
            "Unset: false."
        ),
    )


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
                    "rule": "!has(self.decisions) || self.decisions != 'Published' || !has(self.users) || "
                    "!has(self.users.mode) || self.users.mode == 'Single'",
                    "message": "the published rules know all users as one; write users.mode: Single, or leave "
                    "decisions: Published out",
                },
            ]
        }
    )

    target_ref: Target = Field(description="Workload that is placed near its users.")
    hard_max_latency: Milliseconds | None = Field(
        default=None,
        description=(
            "Round trip in milliseconds beyond which a node is invalid. Where neither limit is stated, the annotations "
            f"{ANNOTATION_HARD_MAX_LATENCY} and {ANNOTATION_SOFT_MAX_LATENCY} of the workload's pod template count. "
            "Unset there too: no node is."
        ),
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
    decisions: Decisions = Field(
        default=Decisions.MEASURED,
        description=(
            "How it is decided. Measured: a pod moves once another node is proven to be better. Published: as in the "
            "thesis, by its rule for the minimum, a hard limit or both limits: every 31 seconds pods leave nodes for "
            "those visited least, by what meters say alone; exploration, moves.coolDownSeconds and "
            "moves.minImprovementPercent do not count then. Unset: Measured."
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
        default=1,
        ge=1,
        le=15,
        description="Round trips that a node needs before anything is concluded from them. Unset: 1.",
    )


class LatencyPolicy(ApiObject):
    """How near a workload has to be to its users, and what is done for it."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                {
                    # The number of replicas that is remembered is that of the workload whose pod moves.
                    "rule": "!has(oldSelf.status) || !has(oldSelf.status.surge) || "
                    "self.spec.targetRef.name == oldSelf.spec.targetRef.name",
                    "message": "a pod of the workload is moving; wait until status.surge is gone, or delete the policy "
                    "and create another",
                }
            ]
        }
    )

    api_version: str = Field(default=API_VERSION, description=rules.API_VERSION_DESCRIPTION)
    kind: str = Field(default=KIND, description=rules.KIND_DESCRIPTION)
    spec: LatencyPolicySpec = Field(description="What is wanted.")
    status: LatencyPolicyStatus = Field(
        default=LatencyPolicyStatus(), description="What is known and was done; the latency controller writes it."
    )
