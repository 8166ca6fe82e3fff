"""Berth: network-, interference- and latency-aware pod placement for Kubernetes.

This package holds what every part shares and no part's own logic: the API kinds
(:mod:`berth.api`), access to the API server (:mod:`berth.kube`) and the command line
(:mod:`berth.cli`). The logic lives in ``controllers`` and ``agents``.
"""
