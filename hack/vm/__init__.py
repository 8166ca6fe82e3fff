"""A small virtual machine for tests of what this one may not have: two sockets, NUMA nodes, cgroups of version 2.

QEMU emulates it in software, so that it needs no rights and nothing of the processor; its kernel is Debian's. Its root
is that of this machine, read-only, below a layer in memory: the project's tree and environment are where they are here.
What it writes to its disk survives the end of a boot, which is a power cut each time.

``packages`` finds or unpacks what it needs, ``initramfs`` makes what the kernel starts first, ``qemu`` says what the
machine has, ``boot`` runs pytest in it. ``init.sh``, ``start.sh`` and ``run.sh``
run inside; ``units`` are systemd's, for boots with it.
"""
