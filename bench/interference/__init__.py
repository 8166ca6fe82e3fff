"""Violations per 16 pods on 4 nodes of 2 sockets, simulated from the published run times of pairs."""
