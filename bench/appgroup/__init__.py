"""How long an AppGroup takes from apply to status: ``python -m bench.appgroup``; method in docs/benchmarks/."""
