"""Berth's controllers, one package each; they never import one another."""
