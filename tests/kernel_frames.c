// The packet loop of the generator's kernel in steps, for tests/unit/test_generator_frames.py.
#include "packets.c"

void part_send_packets(struct run *run, int64_t now)
{
    fill(run, now, true);
}

void part_poll_packets(struct run *run)
{
    poll_packets(run, 0);
}
