"""Developer tooling of the project; not part of the distribution."""
