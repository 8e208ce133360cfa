"""What every room stands on: units, errors, YAML files, paths."""
