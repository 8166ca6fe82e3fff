"""What tests, benchmarks and the demo share around a local cluster: component processes, kubectl, judged placements."""
