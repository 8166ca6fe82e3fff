"""NetworkTopology: what it costs to talk from one place to another.

Group ``networktopology.diktyo.x-k8s.io/v1alpha1``, namespaced. People write the weight set
``UserDefined``; Berth adds computed sets beside it. The spec is upstream's; the status is a
superset of upstream's.
"""

from typing import Annotated, Any, Final

from pydantic import Field, WithJsonSchema

from berth.api import rules
from berth.api.base import ApiModel, ApiObject, Int32, Int64, Timestamp
from berth.api.conditions import Condition
from berth.api.labels import DIKTYO_VERSION, NETWORKTOPOLOGY_GROUP
from berth.api.quantity import QuantityText

API_VERSION: Final = f"{NETWORKTOPOLOGY_GROUP}/{DIKTYO_VERSION}"
"""``apiVersion`` of every NetworkTopology."""
KIND: Final = "NetworkTopology"
"""``kind`` of every NetworkTopology."""
PLURAL: Final = "networktopologies"
"""Resource name in API paths."""

CONDITION_SOURCE_AVAILABLE: Final = "SourceAvailable"
"""True when the measurements that the spec names can be read."""
CONDITION_WEIGHTS_COMPUTED: Final = "WeightsComputed"
"""True when the computed weight sets belong to the current measurements."""
CONDITION_COMPLETE: Final = "Complete"
"""True when every pair of regions, and of zones inside a region, has a cost, and no pair of segments is cut."""

ANNOTATION_SOURCE: Final = "berth.dev/source"
"""Annotation: the one source of costs (probereports, prometheus, configmap, userdefined); unset: the first there is."""

SOURCE_STATED: Final = "userdefined"
"""``status.source`` of costs that follow from what people state in UserDefined."""

_ATOMIC: Final = {"x-kubernetes-list-type": "atomic"}
_Kept = Annotated[dict[str, Any], WithJsonSchema({"type": "object", "x-kubernetes-preserve-unknown-fields": True})]


class Cost(ApiModel):
    """The cost of one direction between two places."""

    destination: str = Field(description="Place that is reached: the value of the topology key's label on its nodes.")
    network_cost: Int64 | None = Field(
        default=None,
        ge=0,
        description="Cost from origin to destination; lower is closer. Unset: not known, which is never the same as 0.",
    )
    bandwidth_capacity: QuantityText | None = Field(
        default=None,
        description=(
            "Bandwidth between origin and destination in bit/s, such as 10G or 1Gi. Unset, negative or no quantity: "
            "not known."
        ),
    )
    bandwidth_allocated: QuantityText | None = Field(
        default=None,
        description=(
            "Bandwidth that placed dependencies take, in bit/s. Berth writes it into the set BandwidthAllocated alone, "
            "and reads it nowhere."
        ),
    )
    is_allowed: bool | None = Field(
        default=None, description="Whether the two places may communicate. False: there is no link, whatever its cost."
    )


class Origin(ApiModel):
    """The costs from one place to the others."""

    origin: str = Field(description="Place that is left: the value of the topology key's label on its nodes.")
    cost_list: tuple[Cost, ...] = Field(
        default=(), description="Costs to the other places.", json_schema_extra={**_ATOMIC}
    )
    origin_inter_statistics: _Kept | None = Field(
        default=None,
        description="Statistics of upstream's controller about links to other places. Kept, not read.",
    )
    origin_intra_statistics: _Kept | None = Field(
        default=None,
        description="Statistics of upstream's controller about links inside the place. Kept, not read.",
    )


class Topology(ApiModel):
    """The costs between the places of one level: regions, zones or segments."""

    topology_key: str = Field(
        description="Node label whose values are the places: topology.kubernetes.io/region, .../zone or .../segment."
    )
    origin_list: tuple[Origin, ...] = Field(description="Costs by origin.", json_schema_extra={**_ATOMIC})


class WeightSet(ApiModel):
    """A named set of costs."""

    name: str = Field(
        description=(
            "Name of the set. UserDefined is written by people; Dijkstra and NetperfCosts are computed; "
            "BandwidthAllocated says what is taken of links with a bandwidthCapacity."
        )
    )
    topology_list: tuple[Topology, ...] = Field(description="Costs by level.", json_schema_extra={**_ATOMIC})


class NetworkTopologySpec(ApiModel):
    """The costs, and where measurements for computed costs come from."""

    weights: tuple[WeightSet, ...] = Field(
        description="Sets of costs, each with a name of its own. Berth writes only the sets that it computes.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    )
    configmap_name: str = Field(
        description="ConfigMap of the same namespace with measured latencies; without one, costs come from UserDefined."
    )


class NetworkTopologyStatus(ApiModel):
    """What the networktopology controller has computed and observed."""

    observed_generation: Int64 | None = Field(
        default=None, ge=0, description="Generation of the spec that this status was computed from."
    )
    node_count: Int64 | None = Field(default=None, ge=0, description="Number of nodes of the cluster.")
    weight_calculation_time: Timestamp | None = Field(
        default=None, description="When the computed weight sets last changed."
    )
    regions: Int32 | None = Field(default=None, ge=0, description="Number of regions that nodes carry in their labels.")
    zones: Int32 | None = Field(default=None, ge=0, description="Number of zones that nodes carry in their labels.")
    segments: Int32 | None = Field(
        default=None, ge=0, description="Number of segments that nodes carry in their labels. Unset: none."
    )
    weight_sets: str | None = Field(
        default=None, description="Names of the weight sets in the spec, comma separated, for kubectl get."
    )
    data_time: Timestamp | None = Field(
        default=None, description="When the newest measurement behind the costs was made."
    )
    source: str | None = Field(
        default=None,
        description=(
            "What the computed costs come from: probereports, prometheus, configmap or userdefined. Unset: nothing."
        ),
    )
    conditions: tuple[Condition, ...] = Field(
        default=(),
        description=(
            "State of the costs. SourceAvailable: the measurements can be read. WeightsComputed: the computed sets are "
            "current. Complete: no pair of places lacks a cost."
        ),
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    )


class NetworkTopology(ApiObject):
    """The network between the regions, zones and segments of the cluster, as costs and bandwidths."""

    api_version: str = Field(default=API_VERSION, description=rules.API_VERSION_DESCRIPTION)
    kind: str = Field(default=KIND, description=rules.KIND_DESCRIPTION)
    spec: NetworkTopologySpec = Field(description="The costs, and where measurements for computed costs come from.")
    status: NetworkTopologyStatus = Field(
        default_factory=NetworkTopologyStatus,
        description="What the networktopology controller has computed and observed.",
    )

    def weight_set(self, name: str) -> WeightSet | None:
        """Return the weight set with the given name, or None."""
        return next((item for item in self.spec.weights if item.name == name), None)


def closed_pairs(weights: WeightSet, topology_key: str) -> set[tuple[str, str]]:
    """Return the (origin, destination) of one level of ``weights`` that may not communicate: ``isAllowed: false``."""
    return {
        (origin.origin, cost.destination)
        for topology in weights.topology_list
        if topology.topology_key == topology_key
        for origin in topology.origin_list
        for cost in origin.cost_list
        if cost.is_allowed is False
    }


def iter_costs(weights: WeightSet, topology_key: str) -> list[tuple[str, str, Cost]]:
    """Return (origin, destination, cost entry) of one level of ``weights``, in declaration order.

    An entry with ``isAllowed: false`` is no link and is left out.
    """
    return [
        (origin.origin, cost.destination, cost)
        for topology in weights.topology_list
        if topology.topology_key == topology_key
        for origin in topology.origin_list
        for cost in origin.cost_list
        if cost.is_allowed is not False
    ]
