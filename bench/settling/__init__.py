"""Does the first placement use the network data applied with it, in whatever order, and how long does it wait?"""
