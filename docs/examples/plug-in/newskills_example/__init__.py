"""Six plug-ins of newskills."""
