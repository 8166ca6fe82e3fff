"""The rules of the thesis that this goes back to, one a file: which nodes a round of its descheduler leaves.

They decide each round, half a minute apart, from what its latency meters have measured so far, and a pod that is
dropped goes to the node visited least (`search`). The simulator runs them as published, to be compared with; ``rounds``
has them decide about pods of policies that say so, and ``rules`` says which of them.
"""
