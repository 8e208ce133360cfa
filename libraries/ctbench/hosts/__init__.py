"""Hosts that run commands: this machine, a sandbox of the run's own, or another machine over SSH."""
