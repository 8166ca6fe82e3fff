"""``kubectl berth explain``: why a pod is where it is, and how an AppGroup is placed; nothing is written."""
