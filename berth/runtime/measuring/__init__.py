"""Round trips of users, from the connections that they make to what the latency controller is told.

    kernel (a connection's TCP_INFO) -> users (who, and what was measured) -> reports (what to tell) -> reporter (HTTPS)

For whatever accepts connections of users: the latency meter and the router.
"""
