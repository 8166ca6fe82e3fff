"""The placement controller: Kubernetes' second scheduler, for pods with ``schedulerName: berth-scheduler``.

Reads: Pods, Nodes, Namespaces, PersistentVolumes and claims, StorageClasses, CSINodes, AppGroups,
NetworkTopologies. Writes, and is alone in writing: the Binding of its own pods (with the annotation
``berth.dev/decision``), their condition ``PodScheduled``, Events about them.

What happens when input is missing:

* no AppGroup of the name in the pod's label: the pod waits ``gang.waitSeconds`` and is then placed alone;
* no NetworkTopology: network costs are unknown, placement falls back to resources and says so;
* an unknown cost between two places counts as 100, the source's figure for "no cost known";
* a pod that needs a feature that is not implemented is never bound; an Event names the field.

Layers, from the bottom: ``state``, ``filters``, ``scores``, ``gang``, ``network`` and ``planning`` are pure;
``binder``, ``reporter`` and ``controller`` talk to the API server.
"""
