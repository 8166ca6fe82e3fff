"""What placements of replicated applications are worth: an evaluator and a brute-force optimum of their own.

Nothing here imports the planner, its routing or its costs: both sides follow the words of docs/concepts/replicas.md, so
that a mistake in one is not repeated in the other.
"""
