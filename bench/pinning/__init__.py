"""Pinning on a real node: how soon and at what price, and in ``effect`` what for."""
