"""End-to-end tests. A package, so that fixtures can live as long as its tests, and no longer."""
