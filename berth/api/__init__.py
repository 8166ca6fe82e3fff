"""Berth's API: models of its kinds, shared names, quantities and conditions.

The CustomResourceDefinitions in ``crds/`` are generated from the models (:mod:`hack.codegen.crds`).
Everything here is pure: no module talks to an API server.
"""
