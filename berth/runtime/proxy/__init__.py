"""What a reverse proxy in front of an application is made of; the latency meter and the router are built of it.

The side of clients is aiohttp's low-level server, the side of the application is `upstream`, whose connections cost
less than half of a general client's and say exactly how far a request had come when it failed:

    ProxyServer -> handler -> Forwarding.forward -> request_head, Body -> UpstreamPool -> ResponseReader
                                       |-> relay of the answer's body, or tunnel after 101

Nothing is buffered but what is on its way, in both directions, with backpressure. An answer that is cut off is cut off
for the client, too.
"""
