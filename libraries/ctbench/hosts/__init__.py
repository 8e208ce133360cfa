"""Where commands run: this machine, a sandbox of its own, or (over SSH) another host."""
