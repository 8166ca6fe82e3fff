"""Round trips to other nodes: whom to probe, and what the samples say.

Pure: ``sampling`` (who probes whom), ``window`` (percentiles, jitter and loss of the last samples), ``disturbance``
(whether a round measured the network or a busy machine).
"""
