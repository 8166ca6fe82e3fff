"""Round trips to other nodes: whom to probe, how, and what the samples say.

Pure: ``sampling`` (who probes whom), ``window`` (percentiles, jitter and loss of the last samples), ``disturbance``
(whether a round measured the network or a busy machine), ``messages`` (between the agent and its prober),
``report`` (the status of a ProbeReport), ``publication`` (when it is worth writing),
``endpoints`` (where the agents are), ``measurements`` (the windows of all peers).
Their clock is ``agents.node.boot_clock``.

In the prober's process: ``prober`` (its loop), ``rounds`` (every peer once), ``request_response``,
``icmp``, ``pacing`` (the cap on probes), ``responder`` (answers other nodes' probers). ``process`` keeps it running.

In the agent's: ``duty`` (all of it together), ``report_writer``, ``metrics``.
"""
