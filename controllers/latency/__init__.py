"""The latency controller: moves the pods of Deployments near their users, by what LatencyPolicies ask for.

Reads: LatencyPolicies; Deployments and HorizontalPodAutoscalers; all pods, nodes, namespaces and volumes, for who has
room. Is told, over HTTPS, by meters what users have and by node agents what they measured; the API server says who
speaks (TokenReview).

Writes, as ``berth-latency``: the status of LatencyPolicies, all of it; while a pod moves, the number of replicas of its
Deployment, one more for each move, and where a policy says so as many as users need, through ``deployments/scale``;
evictions. And its certificate and keys in a Secret,
and where it listens in a ConfigMap, both in its own namespace.

When input is missing: without meters nothing is known and nobody is moved (condition Working). Without node agents
users count as not to be probed. While the API server is away nothing is moved. A Deployment that is scaled by others,
that has two policies, or whose pods another scheduler places, is left alone, and the condition says why; where each
user counts, users of one that others scale are routed all the same.

Layout: ``handlers`` (what makes a policy due), ``reconciler`` (one pass), ``deciding`` (what is looked at, and asked),
``endpoint`` and ``desk`` (what is told), ``callers`` and ``intake`` (who may tell how much), ``observations`` (windows
of round trips), ``crowd`` (those of each user), ``orders`` (who is probed), ``candidates`` (who has room), ``surge``
and ``scaler`` (how many pods), ``evictions``, ``policies``, ``workloads`` and ``places`` (what there is), ``identity``
and ``certificate``, ``conditions`` and ``events``. What is to be done is decided by `berth.scheduling.latency`.
"""
