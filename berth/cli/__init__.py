"""The commands ``berth`` and ``kubectl berth``."""
