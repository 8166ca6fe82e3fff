"""Writes what is generated from the models: ``crds/`` and the reference pages."""
