"""The one exception type of the local cluster tooling."""

from __future__ import annotations


class ClusterError(Exception):
    """Something the person at the keyboard can act on: the message names the cause and a remedy."""
