"""The reference page of the kinds, written from their CustomResourceDefinitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hack.codegen.markdown import table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from hack.codegen.kinds import KindSpec

_INTRODUCTION: Final = """\
<!-- Generated from the models in berth/api by `make manifests`. Do not edit. -->
# Kinds

Every field and column of the kinds, as the API server knows them; `kubectl explain <kind>.spec` says the same
on a cluster.

## Compatibility with upstream

AppGroup and NetworkTopology keep upstream's group, version, names and spec, so upstream's manifests apply unchanged and
upstream's scheduler plugins can read what Berth writes. The status holds upstream's fields and more. A mistake that
upstream's schema lets pass is stored as it was written, and read like this:

| in the spec | read as |
|---|---|
| a `topologySortingAlgorithm` of an unknown name | `KahnSort` |
| several workloads with one selector | one workload, with the dependencies of all |
| a dependency on a selector outside the group, or on the workload itself | not there |
| `numMembers` below the number of workloads | the number of workloads |
| a `minBandwidth` that is negative or not a valid quantity | no demand |
| a selector of more than 63 characters, which no pod label can hold | a workload without pods |
| a `bandwidthCapacity` that is negative or not a valid quantity | not known; the rest of the object counts |
| `isAllowed: false` | no link between the two places, whatever its `networkCost` |

The author is told: by the condition `Ordered` of an AppGroup or `Complete` of a NetworkTopology, both with the reason
`SpecProblems`; and at `kubectl apply`, once the admission policies are installed. They warn
(`kubectl apply --server-side -k deploy/policies/warn`) or refuse (`-k deploy/policies/deny`). They look at what
is written: a stored spec, or weight set, that stays as it is passes.

One form is refused although upstream's schema has it: two weight sets with one name. Names are the keys of a map, so
that server-side apply of `UserDefined` leaves the computed sets beside it alone.

Fields of upstream's controllers that Berth does not read (statistics of origins, and of workloads in an AppGroup's
status) are kept. The status is a subresource here: a status in an applied manifest is left out by the API server.

`networkCost` may be absent, as in upstream, but means "not known" and not 0; so does an absent `maxNetworkCost` mean
"no limit". An object without spec is accepted, as in upstream; Berth's controllers report it. A dependency cycle is
no mistake: the controller condenses it and says so in the condition `Ordered`.

## Sizes

The schema bounds neither the number of workloads nor that of dependencies. etcd does: it refuses an object above
1.5 MiB, and the status repeats every workload in `topologyOrder`. In JSON, kind, name and selector of a workload take
about 50 bytes plus their texts, in the spec and again in the status, and so does a dependency in the spec. What fits,
tried on a real API server: 10,000 workloads with the shortest names and no dependencies; 4,000 Deployments with
13-character names and two dependencies each. In a group of more than 250,000
comparisons (200 workloads with five dependencies each) the policies do not look for selectors that occur twice or are
no workload; the condition tells.
`podsScheduled` is cut at 500 entries.
"""


def kinds_page(kinds: Sequence[tuple[KindSpec, dict[str, Any]]]) -> str:
    """Return the page as Markdown, from the kinds and their CRDs."""
    return "\n".join([_INTRODUCTION, *(_section(kind, crd) for kind, crd in kinds)])


def _section(kind: KindSpec, crd: dict[str, Any]) -> str:
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    names = ", ".join(f"`{name}`" for name in (kind.plural, *kind.short_names))
    categories = ", ".join(f"`{name}`" for name in kind.categories)
    lines = [
        f"## {kind.kind}",
        "",
        schema["description"],
        "",
        f"- API version: `{kind.group}/{kind.version}`, {'namespaced' if kind.namespaced else 'cluster-scoped'}",
        f"- kubectl: {names}; category {categories}",
        "- Subresource: `status`",
        "",
        f"### {kind.kind} columns",
        "",
        *table(
            ("column", "shown", "meaning"),
            ((column.name, "`-o wide`" if column.wide else "always", column.description) for column in kind.columns),
        ),
        "",
    ]
    for part in (part for part in ("spec", "status") if part in schema["properties"]):
        rows = (
            (f"`{path}`", f"{_type(node)}{', required' if required else ''}", node.get("description", ""))
            for path, node, required in _fields(part, schema["properties"][part], required=False)
        )
        lines += [f"### {kind.kind} {part}", "", *table(("field", "type", "meaning"), rows), ""]
    return "\n".join(lines)


def _fields(path: str, node: dict[str, Any], *, required: bool) -> Iterator[tuple[str, dict[str, Any], bool]]:
    yield path, node, required
    inner = node.get("items", node)
    prefix = f"{path}[]" if "items" in node else path
    for name, child in inner.get("properties", {}).items():
        yield from _fields(f"{prefix}.{name}", child, required=name in inner.get("required", ()))


def _type(node: dict[str, Any]) -> str:
    if node.get("type") == "array":
        items = node["items"]
        return f"list of {_name(items)}s{_bounds(items)}{_bounds(node)}"
    return _name(node) + _bounds(node)


def _name(node: dict[str, Any]) -> str:
    return "quantity" if "x-kubernetes-int-or-string" in node else str(node.get("format") or node["type"])


def _bounds(node: dict[str, Any]) -> str:
    parts: Iterable[tuple[str, str]] = (
        ("minimum", "from {}"),
        ("maximum", "to {}"),
        ("maxItems", "at most {}"),
        ("minLength", "from {} character"),
        ("maxLength", "to {} characters"),
    )
    stated = [text.format(node[key]) for key, text in parts if key in node]
    if "enum" in node:
        stated.append("one of " + ", ".join(str(value) for value in node["enum"]))
    return f" ({' '.join(stated)})" if stated else ""
