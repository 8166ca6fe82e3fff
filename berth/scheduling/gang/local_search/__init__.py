"""Local search: one neighbourhood a file, both improve a search state in place while that lowers the cost."""
