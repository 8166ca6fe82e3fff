"""The networktopology controller: turns measurements into network costs between zones and between regions.

Reads: NetworkTopologies; the ConfigMap that ``spec.configmapName`` names, in the same namespace; the region
and zone labels of all nodes.

Alone writes: the weight sets ``Dijkstra`` (or another path algorithm's name) and ``NetperfCosts`` in
``spec.weights``, and the status of NetworkTopologies. Every other weight set belongs to people.

When input is missing: a ConfigMap that is absent or holds nothing usable leaves ``UserDefined`` as the source of
``Dijkstra``; without either there is no computed set. A pair of places without any path has no entry, never the
cost 0. The conditions SourceAvailable, WeightsComputed and Complete say what is missing and what to do.

Layout: ``handlers`` (what makes a NetworkTopology due), ``reconciler`` (one pass), ``sources`` (one file a source of
costs), ``places`` (where nodes are), ``aggregation`` (samples to costs), ``graph`` with ``dijkstra`` and
``bellman_ford`` (paths), ``compute`` (one result from all of it), ``weights``, ``conditions`` and ``status`` (what is
written).
"""
