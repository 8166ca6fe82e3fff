"""How long network costs take to compute and to reach the object, and what the controller needs for it."""
