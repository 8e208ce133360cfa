"""The comparison of two kernels: what is set up of each, and a judgement of each test."""
