"""The cluster as planning sees it: fed by watch events, assumed on by decisions. Pure and in memory.

:class:`~berth.scheduling.cache.cache.Cache` (cache.py) is what event handlers, planner and binding cycle talk to. What
plugins read of it is its :class:`~berth.scheduling.cache.state.ClusterState` (state.py): arrays of nodes (nodes,
columns, selection, domains), indices of pods (pods, pod_templates, selectors, terms, term_index) and storage
objects (volumes, volume_matching). A kind that is never handed in counts as empty: namespaces without labels match no
namespaceSelector but the empty one, claims that are not known keep their pods waiting.
"""

from berth.scheduling.cache.pod_templates import PodInfo, PodTemplateInfo
from berth.scheduling.cache.state import ClusterState

__all__ = ["ClusterState", "PodInfo", "PodTemplateInfo"]
