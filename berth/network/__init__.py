"""Network costs between places, and what the dependencies of an AppGroup make of them. Pure."""
