"""Pods that disturb each other on a socket: which classes fit together, and how a workload's class is found.

Pure. ``pairing`` (classes on one socket, and the socket for one more pod), ``classification`` (classes from run times).
"""
