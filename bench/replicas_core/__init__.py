"""The joint planner in counts by itself: times and memory by size, and a comparison with plans by brute force."""
