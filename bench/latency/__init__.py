"""Near the user, simulated: the published tables, and the decisions of `berth.scheduling.latency` beside them."""
