"""The commands of `./run`, and what all of them have in common."""
