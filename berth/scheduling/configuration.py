"""Configuration of the placement controller: profiles, in the style of KubeSchedulerConfiguration.

Every field's description is its documentation; docs/reference/placement-configuration.md is generated from them.
"""

from __future__ import annotations

import difflib
from enum import StrEnum
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BaseModel, Field, ValidationError, field_validator, model_validator

from berth.api.errors import FieldProblem, explain_validation_error
from berth.api.labels import LABEL_HOSTNAME, LABEL_INTERFERENCE_CLASS, LABEL_ZONE, SCHEDULER_NAME
from berth.api.quantity import QuantityError, parse_quantity
from berth.api.spread import SpreadLevel
from berth.network.costs import DEFAULT_WEIGHT_SETS
from berth.scheduling.configuration_model import ConfigurationModel
from berth.scheduling.decision import Scale
from berth.scheduling.gang.strategies import REPLICAS, STRATEGIES
from berth.scheduling.interference.policy import InterferencePolicy
from berth.scheduling.objective_weights import ObjectiveWeights as ObjectiveWeights

API_VERSION = "berth.dev/v1alpha1"
KIND = "PlacementConfiguration"


class ConfigurationError(ValueError):
    """The configuration cannot be used; the text names the field and the remedy."""


class AfterWait(StrEnum):
    """What happens to an application that could not be placed as a whole in time."""

    PLACE_WHAT_FITS = "PlaceWhatFits"
    KEEP_WAITING = "KeepWaiting"


class GangSettings(ConfigurationModel):
    """How the pods of an AppGroup are placed together."""

    wait_seconds: float = Field(
        default=30.0,
        ge=0,
        description=(
            "How long a group is all or nothing, counted from its first waiting pod: missing members are waited for, "
            "and no member is bound before all fit."
        ),
    )
    after_wait: AfterWait = Field(
        default=AfterWait.PLACE_WHAT_FITS,
        description="PlaceWhatFits binds the members that fit after the wait; KeepWaiting stays all or nothing.",
    )
    planning_seconds: float = Field(
        default=2.0,
        gt=0,
        description=(
            "Time budget of one plan. When it is over, the best plan so far counts, and an Event on the AppGroup says "
            "so. A first plan may take three times as long; pods that were not looked at by then are planned later."
        ),
    )
    strategy: str = Field(
        default=REPLICAS,
        description=(
            "Planning algorithm: replicas (default: in counts of replicas, with rules between pods, Services and "
            "survival of failures), berth (in pairs of pods, which knows none of these) or phare (the published "
            "algorithm, faithful)."
        ),
    )

    alone: Scale = Field(
        default=Scale.COST,
        description=(
            "How the node of a pod is chosen that has an AppGroup and is placed alone (a later replica, or one whose "
            "planned node broke a rule): cost, by what it changes of the objective of strategy replicas; score, by "
            "kube-scheduler's scores and that of the NetworkOverhead plugin, whole points between the cheapest and the "
            "dearest node. Pods without an AppGroup always go by scores."
        ),
    )

    @model_validator(mode="after")
    def _known_strategy(self) -> Self:
        known = (*STRATEGIES, REPLICAS)
        if self.strategy not in known:
            raise ValueError(f"strategy {self.strategy!r} is unknown; choose from {', '.join(known)}")
        return self


class DefaultingType(StrEnum):
    """Where the constraints of pods come from that state none."""

    SYSTEM = "System"
    LIST = "List"


class DefaultConstraint(ConfigurationModel):
    """A soft topology spread constraint for pods that state none."""

    max_skew: int = Field(ge=1, description="How many more pods a domain may have than the emptiest one.")
    topology_key: str = Field(min_length=1, description="Node label whose values are the domains.")
    when_unsatisfiable: Literal["ScheduleAnyway"] = Field(
        default="ScheduleAnyway", description="Always this value: pods that must be spread state it themselves."
    )


SYSTEM_DEFAULT_CONSTRAINTS = (
    DefaultConstraint(max_skew=3, topology_key=LABEL_HOSTNAME),
    DefaultConstraint(max_skew=5, topology_key=LABEL_ZONE),
)
"""kube-scheduler's own."""


class PodTopologySpreadSettings(ConfigurationModel):
    """Spreading of pods that state no topologySpreadConstraints, as PodTopologySpreadArgs of kube-scheduler."""

    defaulting_type: DefaultingType = Field(
        default=DefaultingType.SYSTEM,
        description=(
            "System: maxSkew 3 by kubernetes.io/hostname and 5 by topology.kubernetes.io/zone, both ScheduleAnyway, "
            "towards replicas of the same workload; List: what defaultConstraints says, nothing if it is empty."
        ),
    )
    default_constraints: list[DefaultConstraint] = Field(
        default_factory=list, description="Constraints of pods that state none, with defaultingType List."
    )

    @model_validator(mode="after")
    def _list_or_system(self) -> Self:
        if self.default_constraints and self.defaulting_type is DefaultingType.SYSTEM:
            raise ValueError("defaultConstraints count only with defaultingType List; write it, or leave them out")
        keys = [constraint.topology_key for constraint in self.default_constraints]
        if len(set(keys)) < len(keys):
            raise ValueError("two defaultConstraints have one topologyKey; keep one of them")
        return self

    @property
    def constraints(self) -> tuple[DefaultConstraint, ...]:
        """What holds for pods that state none."""
        if self.defaulting_type is DefaultingType.SYSTEM:
            return SYSTEM_DEFAULT_CONSTRAINTS
        return tuple(self.default_constraints)


class TopologyReference(ConfigurationModel):
    """The NetworkTopology whose costs are used."""

    namespace: str = Field(min_length=1, description="Namespace of the NetworkTopology.")
    name: str = Field(min_length=1, description="Name of the NetworkTopology.")


class Link(ConfigurationModel):
    """A physical link that several pairs of nodes share."""

    name: str = Field(description="Name of the link, for messages.")
    capacity: str = Field(description="Bandwidth that dependency edges may reserve on it, in bit/s, such as 10G.")
    zones: list[tuple[str, str]] = Field(
        default_factory=list,
        description="Pairs of zones whose traffic uses the link; a pair of equal zones means traffic inside the zone.",
    )
    nodes: list[str] = Field(default_factory=list, description="Nodes whose every connection uses the link.")

    @field_validator("capacity", mode="before")
    @classmethod
    def _readable_capacity(cls, value: Any) -> str:
        """A capacity that cannot be read must stop the start, not the first plan."""
        try:
            bits = parse_quantity(value)
        except (QuantityError, TypeError) as error:
            raise ValueError(f"capacity {value!r} is not a valid quantity; write bit/s such as 10G or 500M") from error
        if bits <= 0:
            raise ValueError(f"capacity {value!r} is not above 0; write bit/s such as 10G or leave the link out")
        return str(value)

    @model_validator(mode="after")
    def _used_by_someone(self) -> Self:
        if not self.zones and not self.nodes:
            raise ValueError(f"link {self.name!r} has neither zones nor nodes and would never count; add one of them")
        return self


class BandwidthRisk(ConfigurationModel):
    """Parameters of CheckRiskNodeBandwidth, as the sig-scheduling KEP 260 names them."""

    safe_variance_margin: float = Field(default=1.0, ge=0, description="Factor of the standard deviation.")
    safe_variance_sensitivity: float = Field(
        default=2.0, ge=0, description="Root of the standard deviation: the higher, the more small deviations count."
    )
    risk_threshold: float = Field(
        default=0.75, ge=0, le=1, description="Nodes of a higher risk take no pod that needs bandwidth."
    )


class Profile(ConfigurationModel):
    """How the pods of one scheduler name are placed."""

    scheduler_name: str = Field(
        default=SCHEDULER_NAME, min_length=1, description="spec.schedulerName of the pods it is for."
    )
    network_topology: TopologyReference | None = Field(
        default=None,
        description=(
            "NetworkTopology to use; while it is absent no other is used in its place. Unset: the first of the "
            "AppGroup's namespace, otherwise of systemNamespace."
        ),
    )
    system_namespace: str = Field(
        default="berth-system",
        min_length=1,
        description="Namespace whose first NetworkTopology serves applications that have none in their own.",
    )
    weight_sets: list[str] = Field(
        default_factory=lambda: list(DEFAULT_WEIGHT_SETS),
        description=(
            "Weight sets by preference; each pair of places takes its cost from the first that has it. Measured and "
            "stated costs are not mixed: of each topology key, the first set that has a cost decides which count."
        ),
    )
    gang: GangSettings = Field(default_factory=GangSettings, description="Placing an AppGroup as a whole.")
    spread: SpreadLevel = Field(
        default=SpreadLevel.SOFT,
        description=(
            "Which failure the workloads of an AppGroup must survive where they have two replicas or more: none, node "
            "(any one), zone (any one, and so any node), or soft: a node, then a zone, where it costs no more than its "
            "price. The annotation berth.dev/spread of an AppGroup comes before it."
        ),
    )
    interference: InterferencePolicy = Field(
        default=InterferencePolicy.OFF,
        description=(
            "How pods with an interference class find node and socket, where SocketStatuses say what sockets there "
            "are: Off (classes count for nothing, no pod is assigned a socket), LeastSlowdown (by what all may expect "
            "to suffer), Greedy, Sparing or SocketBased (the published choices, by classes alone)."
        ),
    )
    weights: ObjectiveWeights = Field(default_factory=ObjectiveWeights, description="Terms of the objective.")
    pod_topology_spread: PodTopologySpreadSettings = Field(
        default_factory=PodTopologySpreadSettings, description="Spreading of pods that state no constraints."
    )
    prices: dict[str, Annotated[float, Field(ge=0)]] = Field(
        default_factory=dict,
        description=(
            "Price per unit (core, GiB, GiB for storage, one for extended resources, Gbit/s for `bandwidth`) where a "
            "node has no annotation berth.dev/price-<resource>."
        ),
    )
    usage_threshold: float = Field(
        default=1.0,
        gt=0,
        le=1,
        description=(
            "Share of a node that pods may fill unless their node selector or affinity names the node; the node "
            "annotation berth.dev/usage-threshold overrides it."
        ),
    )
    check_risk_node_bandwidth: BandwidthRisk | None = Field(
        default=None,
        description=(
            "Parameters of the filter CheckRiskNodeBandwidth, by what node agents measure; {} for its defaults. Unset: "
            "the filter is off."
        ),
    )
    links: list[Link] = Field(default_factory=list, description="Physical links shared by several pairs of nodes.")

    @field_validator("interference", mode="before")
    @classmethod
    def _off_as_yaml_reads_it(cls, value: Any) -> Any:
        """YAML 1.1 reads a bare Off as false."""
        return InterferencePolicy.OFF if value is False else value

    @model_validator(mode="after")
    def _unique_links(self) -> Self:
        names = [link.name for link in self.links]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"link {name!r} is listed {names.count(name)} times; give every link its own name")
        return self


class PlacementConfiguration(ConfigurationModel):
    """The whole configuration file."""

    api_version: Literal["berth.dev/v1alpha1"] = Field(default="berth.dev/v1alpha1", description="Always this value.")
    kind: Literal["PlacementConfiguration"] = Field(default="PlacementConfiguration", description="Always this value.")
    profiles: list[Profile] = Field(
        default_factory=lambda: [Profile()], min_length=1, description="One profile per scheduler name."
    )
    bindings_in_flight: int = Field(
        default=48,
        ge=1,
        le=1024,
        description=(
            "Bindings sent to the API server at the same time, up to three quarters in one namespace. With fewer, "
            "those who create pods have more of a busy API server, and pods wait longer. The client has 16 connections "
            "more."
        ),
    )

    count_cni_bandwidth: bool = Field(
        default=False,
        description=(
            "Whether the annotations kubernetes.io/ingress-bandwidth and egress-bandwidth of pods, the wider of the "
            "two, count as a request of network.aware.com/bandwidth, on nodes that have it."
        ),
    )

    pod_deletion_cost: bool = Field(
        default=True,
        description=(
            "Whether pods of ReplicaSets that have an AppGroup are bound with the annotation "
            "controller.kubernetes.io/pod-deletion-cost, unless they have it: so that what is left of an application "
            "whose Deployments shrink is what was planned to be near each other."
        ),
    )

    interference_class_label: str = Field(
        default=LABEL_INTERFERENCE_CLASS,
        min_length=1,
        description="Label of pods that states their interference class, A to D or catA to catD.",
    )

    @model_validator(mode="after")
    def _unique_names(self) -> Self:
        names = [profile.scheduler_name for profile in self.profiles]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"schedulerName {name!r} has {names.count(name)} profiles; keep one")
        return self

    @property
    def interference_policies(self) -> dict[str, InterferencePolicy]:
        """How sockets are chosen, by scheduler name."""
        return {profile.scheduler_name: profile.interference for profile in self.profiles}

    def profile_for(self, scheduler_name: str) -> Profile | None:
        """The profile of a scheduler name, None for pods that belong to other schedulers."""
        return next((profile for profile in self.profiles if profile.scheduler_name == scheduler_name), None)


def parse_configuration(document: Any, *, source: str) -> PlacementConfiguration:
    """Check a parsed configuration file.

    Args:
        document: what the YAML parser returned.
        source: file name, for messages.

    Raises:
        ConfigurationError: a field is unknown or has a wrong value.
    """
    if document is None:
        return PlacementConfiguration()
    try:
        return PlacementConfiguration.model_validate(document)
    except ValidationError as error:
        found = zip(
            error.errors(include_url=False), explain_validation_error(error, described=_DOCUMENTED), strict=True
        )
        problems = "; ".join(
            f"{KIND}: {_unknown_field(item['loc']) if item['type'] == 'extra_forbidden' else problem}"
            for item, problem in found
        )
        raise ConfigurationError(f"{source}: {problems}") from error


_DOCUMENTED = "docs/reference/placement-configuration.md"


def _unknown_field(location: tuple[int | str, ...]) -> FieldProblem:
    """A field that does not exist: the nearest known name, or the names there are."""
    model: type[BaseModel] | None = PlacementConfiguration
    for part in location[:-1]:
        if isinstance(part, str) and model is not None:
            model = model_of(model, part)
    name = str(location[-1])
    names = sorted(field.alias or key for key, field in model.model_fields.items()) if model is not None else []
    near = difflib.get_close_matches(name, names, n=1)
    remedy = f"write {near[0]!r}" if near else f"remove it or use one of {', '.join(names)}"
    return FieldProblem(location, f"there is no such field; {remedy}")


def model_of(model: type[BaseModel], alias: str) -> type[BaseModel] | None:
    """The model behind a field, itself or in a list; None for fields with plain values."""
    info = next((f for key, f in model.model_fields.items() if alias in (f.alias, key)), None)
    if info is None:
        return None
    kinds = [info.annotation, *get_args(info.annotation)]
    return next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)), None)
