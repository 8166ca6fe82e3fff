"""The socketstatus controller: keeps ``spec.assignments`` of SocketStatuses right as pods come and go.

Reads: SocketStatuses; all pods; WorkloadProfiles.

Writes, as ``berth-socketstatus``: ``socket`` and ``time`` of assignments that the placement controller or it itself
has made, where pods should change places; takes assignments out whose pod is gone, whoever made them, and Berth's own
whose pod has no class any more; with ``--socketstatus-assign-all`` assigns pods that others have placed. The list is
written as it was read but for that, and only if nobody has written since (resourceVersion). And the condition Paired.
The rest of the status is the agent's.

When input is missing: without sockets in the status, or where nobody pins, nobody moves. A pod that the watch does not
show is asked for before its assignment is taken out. An assignment that somebody else has made, or edited, counts and
stays; one that makes no sense is left out and told in the condition.

Layout: ``handlers`` (what makes a SocketStatus due), ``reconciler`` (one pass), ``pods`` (the pods of nodes),
``ownership`` (whose assignments they are), ``seats`` (pods on sockets, of all that), ``conditions`` and ``events``.
Which pods change places is decided by `berth.scheduling.interference.exchange`.
"""
