"""What the router adds to requests beside other proxies, and what users notice when the pod that serves them dies."""
