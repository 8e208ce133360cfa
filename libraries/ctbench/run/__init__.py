"""An acceptance run: what it was asked for, and how far it got."""
