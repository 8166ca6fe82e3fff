"""What runs Berth's components: processes with leader election, health, logs, work queues and the kopf operator.

A component is a controller or an agent; the runtime finds it by its entry point, gives it a client, an event recorder
and a place for its checks, and knows nothing of what it does.
"""
