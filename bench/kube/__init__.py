"""What the copy of a cluster costs in time and memory."""
