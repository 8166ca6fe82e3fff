"""The placement controller: Kubernetes' second scheduler, for pods with ``schedulerName: berth-scheduler``.

Reads: Pods, Nodes, Namespaces, Services, PersistentVolumes and claims, StorageClasses, CSINodes, CSIDrivers,
CSIStorageCapacities, VolumeAttachments, AppGroups, NetworkTopologies, LatencyPolicies, ReplicaSets and, where a profile
asks for sockets, SocketStatuses and WorkloadProfiles. Writes, and is alone in writing: the Binding of its own pods
(with the annotation ``berth.dev/decision``), their condition ``PodScheduled``, Events about them; as kube-scheduler for
its pods, on claims that wait for their first consumer: the volume's ``spec.claimRef``, or the claim's annotation
``volume.kubernetes.io/selected-node``. In SocketStatuses it owns the assignments that it makes, and no others.

What happens when input is missing:

* no AppGroup of the name in the pod's label: it is looked for (``group_lookup``); the pod waits
  ``gang.waitSeconds`` and is then placed alone;
* ReplicaSets that cannot be read, for how many pods are to come first (``replica_sets``): those that came are planned;
* no NetworkTopology: network costs are unknown, placement falls back to resources and says so;
* an unknown cost between two places counts as 100, the source's figure for "no cost known";
* a LatencyPolicy that was not read since a pod of its workload came: the pod waits for that (``latency_policies``), and
  where it cannot be read for 30 s goes by what is known;
* no SocketStatus, or no profile that asks for sockets: interference classes count for nothing;
* a claim that is not bound within ten minutes of a decision: the room is given back and the pod planned again;
* a pod that needs a feature that is not implemented is never bound; an Event names the field.

A pod's way from the watch to its Binding, a step a file (``berth/scheduling`` does no I/O):

1. ``event_handlers``: a watch event, with the pod before and after;
2. ``berth/scheduling/cache/cache``: what is known of the cluster now;
3. ``berth/scheduling/queue``: the pod's entry (its AppGroup, or itself) waits for its turn;
4. ``berth/scheduling/cycle``: one attempt: wait for members, plan, report, decide when to try again;
5. ``berth/scheduling/planner``: together (``gang/``) or alone, and assumed in the cache;
6. ``berth/scheduling/plugins``: which nodes take the pod, and which is best;
7. ``berth/scheduling/decision``: the node, with what explains it;
8. ``reports``: Events, conditions and metrics of what the cycle found; decisions go on;
9. ``binding_cycle``: is all as it was decided on, are the claims bound (``volume_binder``), what became of the Binding;
10. ``binder``: the Binding itself, until its outcome is known. The pod's own event then confirms it in the cache.

``controller`` makes these parts and runs them: steps 4 to 7 in ``planning_thread``, all else on the event loop.
"""
