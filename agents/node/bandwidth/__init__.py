"""Bandwidth of the node's link: how much there is, and how much of it is used.

Pure: ``utilisation`` (what readings of byte counters say over a window).

``links`` reads /proc and /sys: which interface, its speed, its counters. ``advertisement`` writes the capacity into the
node's status, ``metrics`` are its series, ``duty`` is all of it together.
"""
