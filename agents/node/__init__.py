"""The node agent: what Berth measures on every node.

Layout: ``probing`` measures round trips to other nodes.
"""
