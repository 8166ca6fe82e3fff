"""How plans are found: starts by slices over zones, improvement by moves, kicks, exact search of small problems."""
