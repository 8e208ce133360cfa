"""Foundations that every other package uses: units, errors, YAML files, paths."""
