"""CRI-O, built from the module that ``go.mod`` pins, for tests of what the agents do on nodes that have it.

``programs`` builds it and unpacks what it starts; ``pinns.sh`` stands for a program of its that is written in C.
"""
