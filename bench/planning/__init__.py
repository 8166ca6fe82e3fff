"""Time and memory of planning one large AppGroup."""
