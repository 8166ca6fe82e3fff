"""The scheduler over manifests instead of a cluster: what ``berth plan`` shows. Pure, from text to a simulation.

Reads: manifests as text, objects of a live cluster as lists. Writes: nothing. The plan itself is made by the
scheduler's own code: :class:`~berth.scheduling.cache.cache.Cache`, its queue, its cycle and its plugins. When input is
missing: an object that cannot be read is a problem with file, line, object, field and remedy, all of them are reported
together, and nothing is planned.
"""
