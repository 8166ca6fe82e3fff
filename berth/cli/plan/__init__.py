"""``berth plan``: where pods would go, from manifests, a live cluster (read only) or both."""
