"""From pods, groups and cluster state to decisions. Pure: `berth plan` and the controller share it."""
