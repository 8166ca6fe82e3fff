"""Time and memory of ``berth plan`` over a snapshot of a large cluster."""
