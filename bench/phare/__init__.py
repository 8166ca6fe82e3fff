"""Reproduction of the published PHARE experiments, and what the default strategy makes of them.

`python -m bench.phare run` runs everything and writes the numbers to `bench/phare/results/`, then tables and plots to
docs/benchmarks/; `python -m bench.phare report` only does the latter. One process, one thread, fixed seeds.
"""
