"""What ``kubectl berth explain`` runs: what to read, documents, and their text."""

from __future__ import annotations

from berth.cli.explain.group import group_document
from berth.cli.explain.group_reading import read_group_facts
from berth.cli.explain.latency_policy import policy_document
from berth.cli.explain.latency_policy_page import policy_page
from berth.cli.explain.node import node_document
from berth.cli.explain.node_page import node_page
from berth.cli.explain.node_reading import read_node_facts
from berth.cli.explain.pod import pod_document
from berth.cli.explain.tables import group_page, pod_page
from berth.cli.plan.run import Options, configure
from berth.scheduling.configuration import ConfigurationError, PlacementConfiguration
from berth.scheduling.simulation.manifests import Source

__all__ = [
    "ConfigurationError",
    "group_document",
    "group_page",
    "node_document",
    "node_page",
    "pod_document",
    "pod_page",
    "policy_document",
    "policy_page",
    "profiles",
    "read_group_facts",
    "read_node_facts",
]


def profiles(configuration: tuple[str, str] | None) -> PlacementConfiguration:
    """The profiles of a (file name, text) pair; the defaults without one.

    Raises:
        ConfigurationError: the file is wrong.
    """
    return configure(Options(configuration=Source(*configuration) if configuration is not None else None))
