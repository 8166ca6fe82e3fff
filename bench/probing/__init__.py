"""How true the prober's figures are, and what it costs a node."""
