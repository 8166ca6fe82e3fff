"""``kubectl berth topology``: what it costs to talk between zones, and what that was worked out from."""
