"""Benchmarks and the reproduction of published experiments; each package names its method and its command."""
