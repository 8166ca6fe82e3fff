"""The router: a reverse proxy in front of a Service that sends each user to the node which is near the user.

Reads the EndpointSlices of the Service, the status of a LatencyPolicy (who is served by which node), and what the
latency controller says in answer to its reports; writes nothing on the API server. What it does not know it does
without: no policy, no key or no pod on a user's node means the pod with the least load.

Pure: ``endpoints`` (which pods may be asked), ``associations`` (who belongs to which node), ``balancer`` (who is asked
next), ``steering`` (who is sent to another node's router). ``routing`` is one request, ``admin`` shows what is known,
``agent`` puts it together. What it shares with the latency meter is in ``berth.runtime.proxy`` and
``berth.runtime.measuring``.
"""
