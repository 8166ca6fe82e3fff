"""Berth against kube-scheduler on one real control plane: ``python -m bench.live`` (see docs/benchmarks/live.md)."""
