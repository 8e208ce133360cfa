// Parts of the generator's kernel that are of interest by themselves, as functions: tests/kernel_parts.py.
#include "connection.h"

double part_next_allowed(double not_before, double now, double slack, double interval)
{
    return next_allowed(not_before, now, slack, interval / CATCH_UP);
}

uint64_t part_next_state(uint64_t state, uint64_t mask)
{
    return next_state(state, mask);
}

uint64_t part_scrambled(uint64_t state, uint64_t mask, uint64_t shift)
{
    return scrambled(state, mask, shift);
}

int64_t part_looks_due(int64_t *next, int64_t now, int64_t every)
{
    return looks_due(next, now, every);
}

int part_bin_of(uint32_t units)
{
    return bin_of(units);
}

void part_message_sent(struct connection *c, int64_t now)
{
    message_sent(c, now);
}

void part_message_taken(struct run *run, struct connection *c, int side, int64_t now)
{
    message_taken(run, c, side, now);
}

void part_fail_for_want_of_a_reply(struct run *run, struct connection *c)
{
    fail(run, c, 0, NO_REPLY);
}
