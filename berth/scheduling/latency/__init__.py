"""Near the user: what is known of nodes, and what follows from it for the pods of a LatencyPolicy.

Pure; the time is an argument, and the status of the policy is the only memory. ``window`` (round trips to percentiles),
``classification`` (a node's state), ``knowledge`` (what a status knows of nodes). ``decision`` says what to do next:
it carries open moves on (``moves``), asks the objective for the next (``constraints``, ``minimum``, one a file) and
for what should be measured (``measuring``). Many users: ``user_table`` (who is how far from which node), ``coverage``
(nodes for k pods), ``association`` (users to pods), ``sizing`` (how many pods), ``gains`` (what a move gave),
``per_user`` (what to do next). ``published`` has the rules of the
thesis that this goes back to, for comparison and for policies that ask for them.
"""
