"""What a scheduling plugin is, what it is given, and what its rejections are."""
