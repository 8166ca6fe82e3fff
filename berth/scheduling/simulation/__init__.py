"""What-if plans and explanations: pure, from objects to reports.

Reads: manifests as text, objects of a live cluster as lists, the annotation ``berth.dev/decision``, Events.
Writes: nothing; the results are documents (dicts with a version) and tables. The plan itself is made by the
controller's own code: :class:`~berth.scheduling.cache.cache.Cache`, its queue and its scheduling cycle.
When input is missing: an object that cannot be read is a problem with file, line, object, field and remedy, all of
them are reported together, and nothing is planned.
"""
