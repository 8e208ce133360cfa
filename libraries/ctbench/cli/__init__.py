"""The commands of `./run`, and the code that they share."""
