"""Throughput between two nodes, measured by sending: off unless people allow it, for it takes what others could use.

Pure: ``ledger`` (what each sender may still send within the hour), ``turns`` (which peer is measured next).

``sender`` and ``receiver`` are the two ends of a test, ``duty`` is all of it together.
"""
