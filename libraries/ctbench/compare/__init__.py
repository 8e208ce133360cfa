"""The comparison of two builds: their runs side by side, what else differs, and a judgement of each test."""
