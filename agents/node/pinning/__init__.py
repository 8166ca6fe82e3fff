"""CPU pinning: the containers of a node's pods get the CPUs of the socket that each pod is assigned to.

Pure: ``cgroup_paths`` (where a container's cgroup is, by driver and runtime), ``cri_messages`` (the
part of the Container Runtime Interface that is spoken).

``hierarchy`` finds cgroups, ``cpuset`` reads and writes the cpuset of one, ``cri`` asks the container runtime.
``writer`` gives a container other CPUs, ``journal`` keeps on disk what it had before, ``restore`` gives that back.
"""
