"""The scheduling library: from nodes, pods and AppGroups to decisions. Pure: no I/O, no metrics, no controller.

Who must know where a pod would go, and why not there, imports it: the placement controller, ``berth plan``,
benchmarks. Reads what it is told through :class:`~berth.scheduling.cache.cache.Cache`; writes nothing but that cache
(assumed pods); tells a :class:`~berth.scheduling.cycle.CycleListener` what it found.

Layout: ``cache`` (nodes, pods, volumes as arrays), ``framework`` and ``plugins`` (one rule a file), ``gang`` (joint
plans), ``queue``, ``cycle``, ``planner``, ``single``, ``decision``, ``annotations``, ``messages``, ``configuration``,
``simulation`` (the same over manifests).
"""
