"""Workloads of kube-scheduler's own scheduler_perf, placed by kube-scheduler and by Berth on one control plane."""
