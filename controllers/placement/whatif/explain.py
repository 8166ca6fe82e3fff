"""What ``kubectl berth explain`` runs: documents and their text. No I/O."""

from __future__ import annotations

from controllers.placement.config import ConfigurationError, PlacementConfiguration
from controllers.placement.whatif.command import Options, configure
from controllers.placement.whatif.explain_group import group_document
from controllers.placement.whatif.explain_pod import pod_document
from controllers.placement.whatif.explain_tables import group_page, pod_page
from controllers.placement.whatif.manifests import Source

__all__ = ["ConfigurationError", "group_document", "group_page", "pod_document", "pod_page", "profiles"]


def profiles(configuration: tuple[str, str] | None) -> PlacementConfiguration:
    """The profiles of a (file name, text) pair; the defaults without one.

    Raises:
        ConfigurationError: the file is wrong.
    """
    return configure(Options(configuration=Source(*configuration) if configuration is not None else None))
