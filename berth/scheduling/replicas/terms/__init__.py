"""Terms of the objective: each has its value, and what one more replica would add to it on every column at once."""
