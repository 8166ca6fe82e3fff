"""Filters: which nodes a pod may be placed on, as strict as kube-scheduler.

Contract
    Reads: a ``PodInfo`` and the ``ClusterState``; writes nothing; pure.
    ``FilterPipeline.evaluate`` answers for one pod: a mask over node slots, and how many nodes
    were rejected for which reason. ``unsupported_features`` names the fields of a pod that are not
    implemented; the pipeline refuses such a pod everywhere.

One filter a file; ``pipeline.default_filters`` lists them in kube-scheduler's order.
"""

from berth.scheduling.plugins.base import Filter, Rejection
from berth.scheduling.plugins.pipeline import FilterPipeline, FilterResult, default_filters
from berth.scheduling.plugins.unsupported_features import unsupported_features

__all__ = ["Filter", "FilterPipeline", "FilterResult", "Rejection", "default_filters", "unsupported_features"]
