"""The placement controller: Kubernetes' second scheduler, for pods with ``schedulerName: berth-scheduler``.

Reads: Pods, Nodes, Namespaces, PersistentVolumes and claims, StorageClasses, CSINodes, CSIDrivers,
CSIStorageCapacities, VolumeAttachments, AppGroups, NetworkTopologies. Writes, and is alone in writing: the Binding of
its own pods (with the annotation ``berth.dev/decision``), their condition ``PodScheduled``, Events about them; and as
kube-scheduler does for its pods, on claims that wait for their first consumer: the volume's ``spec.claimRef``, or the
claim's annotation ``volume.kubernetes.io/selected-node``.

What happens when input is missing:

* no AppGroup of the name in the pod's label: the pod waits ``gang.waitSeconds`` and is then placed alone;
* no NetworkTopology: network costs are unknown, placement falls back to resources and says so;
* an unknown cost between two places counts as 100, the source's figure for "no cost known";
* a claim that is not bound within ten minutes of a decision: the room is given back and the pod planned again;
* a pod that needs a feature that is not implemented is never bound; an Event names the field.

Layers, from the bottom: ``state``, ``filters``, ``scores``, ``gang``, ``network`` and ``planning`` are pure;
``binder``, ``volume_binder``, ``volume_watches``, ``reporter`` and ``controller`` talk to the API server.
"""
