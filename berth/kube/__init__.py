"""Access to the Kubernetes API server: the only layer that talks to it."""
