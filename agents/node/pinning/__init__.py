"""CPU pinning: the containers of a node's pods get the CPUs of the socket that each pod is assigned to.

Reads: the node's pods and its SocketStatus; WorkloadProfiles; sysfs; the states of the
kubelet's CPU and memory managers; from the container runtime, which containers run and where their cgroups are.

Alone writes: cpusets of containers of pods with a class and an assignment, by the runtime or in their cgroups; the
status of the SocketStatus of its node's name; the journal of what cpusets were.

When input is missing: without sockets, cgroups or a journal nothing is written and what is pinned stays so; without an
assignment or a class a pod gets back what it had. A kubelet of which nothing is known is taken for one that pins, and
nothing is written. While the API server is away, what it said last counts. Without the runtime, containers are found by
their cgroups, and these are written.

Pure: ``cgroup_paths`` (where a container's cgroup is), ``cri_messages`` (the part of the Container Runtime Interface
that is spoken), ``wanted`` (pods and their CPUs, of assignments), ``division`` (what each has of its socket) and
``pod_cpus`` (what it needs there), ``reconciler`` (what to do about one container), ``profiles`` (classes by
WorkloadProfiles), ``sockets`` and ``report`` (the status).

``agent`` is the component, ``workplace`` what it needs of the machine, ``pinner`` one round, ``rounds`` what that has
found. ``hierarchy`` finds cgroups, ``containers`` those of pods, ``cpuset`` reads and writes one, ``cri`` asks the
runtime, ``writer`` decides between the two, ``journal`` keeps what was there before, ``restore`` gives it back;
``kubelet_state``, ``status_writer``, ``settings`` and ``metrics`` are what they say.
"""
