"""The choices of node and socket for pods with an interference class, by name."""

from __future__ import annotations

from enum import StrEnum


class InterferencePolicy(StrEnum):
    """How a profile places pods with an interference class."""

    LEAST_SLOWDOWN = "LeastSlowdown"
    """where all may expect to suffer least, the pod and those beside it"""
    GREEDY = "Greedy"
    """nodes with pods that do no harm first"""
    SPARING = "Sparing"
    """those that do harm together, so that the others are spared"""
    SOCKET_BASED = "SocketBased"
    """the node with the socket whose pods pair best with it"""
    OFF = "Off"
    """classes count for nothing"""
