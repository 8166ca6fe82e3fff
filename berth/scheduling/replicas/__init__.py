"""Joint plans in counts: how many replicas of each workload go to which node, by cost and by what survives."""
