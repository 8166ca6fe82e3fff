"""Pods that disturb each other on a socket: classes, slowdowns, and where one more pod goes.

Pure. ``pairing`` (classes on one socket, and the socket for one more pod), ``classification`` (classes from run times),
``slowdown`` (what pods on one socket suffer), ``assignment`` (pods to sockets), and choices of the node, one a file:
``greedy``, ``sparing`` and ``socket_based`` as published, ``least_slowdown`` Berth's own, and the sockets for it.
For a whole cluster: ``residents`` (pods and kinds of nodes) and ``node_costs`` (each kind judged once). For pods that
are there: ``exchange`` (whether they should change places).
"""
