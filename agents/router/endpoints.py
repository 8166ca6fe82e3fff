"""Which pods of the Service may be asked, by its EndpointSlices."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from berth.kube.endpoint_slices import Endpoint, EndpointSlice, Port
from berth.runtime.proxy.upstream import Address

_FAMILIES: Final = ("IPv4", "IPv6")


class Backend(NamedTuple):
    """A pod that may be asked."""

    address: Address
    """where it listens"""
    node: str
    """name of its node; empty: not known"""
    pod: str
    """its name; empty: it is none"""


def ports_asked(slices: Iterable[EndpointSlice], stated: str, numbers: Collection[int] = ()) -> Collection[str] | None:
    """Return what the port that is asked is called in slices; None: there are others, and nothing says which of them.

    Their order does not: it is that of hashes, another in each slice.

    Args:
        slices: all EndpointSlices of the Service.
        stated: name or number that people have set; empty: none.
        numbers: those that are asked already. With a Service that gets another port they go on to be.
    """
    found = {
        (port.name, port.port)
        for item in slices
        if item.address_type in _FAMILIES
        for port in item.ports or ()
        if port.port and port.protocol == "TCP"
    }
    if stated:
        return (stated,) if not found or any(stated in (name, str(number)) for name, number in found) else None
    names = {name for name, _ in found}
    if len(names) > 1:
        names = {name for name, number in found if number in numbers}
    return names if names or not found else None


def backends(slices: Iterable[EndpointSlice], ports: Collection[str] | None = None) -> tuple[Backend, ...]:
    """Return the pods that are ready, or, where none is, those that end and still serve, as kube-proxy does.

    A pod with addresses of both families is named once, by IPv4. Names of hosts (``addressType: FQDN``) are left out.

    Args:
        slices: all EndpointSlices of the Service.
        ports: names, or a number, of the port that is asked; None: whichever is the first.
    """
    ready: dict[str, Backend] = {}
    ending: dict[str, Backend] = {}
    for item in sorted(slices, key=lambda item: item.address_type):
        number = _number(item.ports or (), ports) if item.address_type in _FAMILIES else None
        if number is None:
            continue
        for endpoint in item.endpoints or ():
            state = endpoint.conditions
            if not endpoint.addresses:
                continue
            # An unknown `ready` is taken for true, an unknown `serving` is that of `ready` (discovery.k8s.io/v1).
            is_ready = state.ready is not False
            serves = is_ready if state.serving is None else state.serving
            found = _backend(endpoint, number)
            if is_ready and not state.terminating:
                ready.setdefault(found.pod or str(found.address), found)
            elif serves and state.terminating:
                ending.setdefault(found.pod or str(found.address), found)
    return tuple(sorted((ready or ending).values()))


def _backend(endpoint: Endpoint, number: int) -> Backend:
    reference = endpoint.target_ref
    pod = reference.name if reference is not None and reference.kind == "Pod" else ""
    return Backend(Address(endpoint.addresses[0], number), endpoint.node_name, pod)


def _number(ports: Iterable[Port], wanted: Collection[str] | None) -> int | None:
    """The number of the port that is asked; None: the slice has no such port."""
    for port in ports:
        if not port.port or port.protocol != "TCP":
            continue
        if wanted is None or port.name in wanted or str(port.port) in wanted:
            return port.port
    return None
