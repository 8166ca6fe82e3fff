"""Real nodes on this machine: for each a network namespace, a containerd and a kubelet. See docs/local-cluster.md."""
