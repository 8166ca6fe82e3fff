"""Round trips from the node to users, measured when the latency controller asks for them."""
