"""Where measurements come from: one file a source, all of them giving a :class:`~.base.Reading`."""
