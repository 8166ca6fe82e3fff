"""What the latency meter adds to requests, and what it takes."""
