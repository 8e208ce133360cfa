// A warm start: the connections of the steady state are opened at once, not over one lifetime.
#ifndef POPULATION_H
#define POPULATION_H

#include <math.h>

#include "pace.h"

// A prime, so coprime to all numbers but its multiples: a jump of 0.618 of 2^20, the golden section.
#define STRIDE 648059

// The share of the population that was opened, or skipped because its time was over, `elapsed` after the start. It
// grows evenly within a server's wait, and by less in each of the `waits`, as the open connections take a growing share
// of the load.
static inline double opened_share(int64_t elapsed, int64_t wait, int64_t waits)
{
    double before = (double)least(elapsed / wait, waits), all = (double)waits;
    double of_this_one = (all - before) * ((double)elapsed - before * (double)wait) / (double)wait;
    return (before * all - before * (before - 1) / 2 + of_this_one) / (all * (all + 1) / 2);
}

// The messages left to connection `number` of the population when it is opened `elapsed` after the start; 0 where its
// time is over. One connection ends each `interval`. Once all short ones have ended, only the long ones' share ends in
// the same time.
static inline int64_t messages_left(const struct parameters *p, int64_t number, int64_t elapsed, double interval)
{
    double wait = (double)p->server_wait, short_ones = (double)p->short_messages * wait;
    double at = ((double)(number * STRIDE % p->population) + 0.5) * interval;
    double ends = later(at, short_ones + (at - short_ones) * 1000000 / (double)(1000000 - p->short_per_million));
    return most(0, (int64_t)floor(ends / wait) - elapsed / p->server_wait);
}

#endif
