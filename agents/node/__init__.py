"""The node agent: what Berth measures on every node.

Reads: the EndpointSlices of the agents' headless Service; the Node of its own name, once for each report that it makes;
speed and byte counters of the node's link.

Alone writes: the ProbeReport named after its node; the node's capacity of ``network.aware.com/bandwidth``.

When input is missing: a link of unknown speed is not advertised, and what was advertised stays. A node that the
EndpointSlices do not list has no peers, and a report without any. A peer that does not answer has a loss of 1 and no
latency. While the API server is away, measuring and metrics go on with the peers known last.

Layout: ``agent`` (the component), ``settings``, ``probing`` (round trips to other nodes),
``bandwidth`` (the node's link), ``throughput`` (tests between two nodes, off by default), ``topology`` (sockets, caches
and cores of the node), ``pinning`` (CPUs of pods; a component of its own, since it is root and the network is not its
business).
"""
