"""The device under test: its set-up, and what it reports of itself."""
