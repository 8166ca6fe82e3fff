"""CPU topology of the machine: sockets, dies, NUMA nodes, last-level caches, cores, SMT siblings.

Pure: ``machine`` (what a machine is), ``readings`` (what its sysfs says, file by file), ``assembly`` (a machine of
readings, and what had to be assumed where they are missing or contradict each other).

``sysfs`` reads a sysfs directory, that of the machine or a copy of another one's.
"""
