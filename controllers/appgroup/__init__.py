"""The appgroup controller.

Reads: AppGroups of all namespaces: kopf says which are due, every pass gets the object itself. Pods that carry the
label ``appgroup.diktyo.x-k8s.io``, through a list+watch store of their own.

Alone writes: the status of AppGroups, by server-side apply with the field manager ``berth-appgroup``;
Events about AppGroups. It never touches a spec, an annotation or a finalizer.

Promises: the status is a function of the spec, the pods and what the status said before (times only), so
it can be lost, repeated or computed by another replica without harm. A spec change is acted on at once,
pod changes are gathered for a moment. Without pods the order is there all the same; a spec that makes no
sense gets ``Ordered=False`` with the field and the remedy, and keeps the order of the last good spec;
other AppGroups are not affected.
"""
