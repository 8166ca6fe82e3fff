"""The networktopology controller: turns measurements into network costs between zones and between regions.

Reads: NetworkTopologies; ProbeReports, where their kind is there; a Prometheus server, where the settings name one; the
ConfigMap that ``spec.configmapName`` names, in the same namespace; the region and zone labels of all nodes.

Alone writes: the weight sets ``Dijkstra`` (or another path algorithm's name) and ``NetperfCosts`` in
``spec.weights``, and the status of NetworkTopologies. Every other weight set belongs to people.

When input is missing: without fresh ProbeReports Prometheus counts, then the ConfigMap; one that is absent or holds
nothing usable leaves ``UserDefined`` as the source of ``Dijkstra``; without any there is no computed set. A pair of
places without any path has no entry, never the cost 0. The conditions SourceAvailable, WeightsComputed and Complete say
what is missing and what to do.

Layout: ``handlers`` (what makes a NetworkTopology due), ``reconciler`` (one pass), ``sources`` (one file a source of
costs), ``places`` (where nodes are), ``aggregation`` and ``node_medians`` (samples to latencies), ``graph`` with
``dijkstra``, ``bellman_ford`` and ``floyd_warshall`` (paths), ``scale`` (latencies to costs), ``compute`` (one result
from all of it), ``weights``, ``conditions`` and ``status`` (what is written), ``write_pacing`` (when).
"""
