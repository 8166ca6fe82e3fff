"""``berth plan -f FILE -o json``, for a process of its own."""

from __future__ import annotations

import sys

from berth.cli.main import app

if __name__ == "__main__":
    app(["plan", "-f", sys.argv[1], "-o", "json"])
