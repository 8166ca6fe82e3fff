"""Strategy `replicas`: an AppGroup's waiting pods as a problem in counts, and its plan as decisions about pods."""
