"""What `./run tests` does: every test as an ordinary user, and as root what root may do differently."""
