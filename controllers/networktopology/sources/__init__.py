"""Where costs come from: one file a source, each with a :class:`~.base.Source` that :mod:`.registry` names."""
