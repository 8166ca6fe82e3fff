"""The latency meter: a reverse proxy in the application's pod, which measures how far its users are.

Reads: the kernel's round trips of the connections that it accepts; times that clients state; the latency controller's
instructions.

Alone writes: nothing. It tells the latency controller the round trips of users, who are keyed hashes outside of it.

When input is missing: without a controller, or while that is away, it measures and shows the figures itself; the
newest of each user wait, so many users at most. Without the application, requests are answered with 503.

Layout: ``agent`` (the component), ``settings``, ``meter`` (what is measured of a request), ``measurements`` (the
figures over HTTP), ``metrics``. What it shares with the router is in ``berth.runtime``: ``proxy`` and ``measuring``.
"""
