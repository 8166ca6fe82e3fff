"""What runs outside the control plane, on the nodes themselves."""
