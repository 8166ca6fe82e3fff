"""Berth's API: models of its kinds, shared names, quantities and conditions.

The CustomResourceDefinitions in ``crds/`` are generated from the models (:mod:`berth.api.crdgen`).
Everything here is pure: no module talks to an API server.
"""
