// Common to all kinds of load: the processor's cycle counter, a random permutation, a trial's phases, the pace after a
// delay, an early end, histograms of times, and the points of a trial's timeline.
#ifndef PACE_H
#define PACE_H

#include <x86intrin.h>

#include "ring.h"

#define UNTIL_THEN (INT64_MAX / 2)

INLINE int64_t cycles(void)
{
    return (int64_t)__rdtsc();
}

INLINE int64_t most(int64_t one, int64_t other)
{
    return one > other ? one : other;
}

INLINE int64_t least(int64_t one, int64_t other)
{
    return one < other ? one : other;
}

INLINE double later(double one, double other)
{
    return one > other ? one : other;
}

INLINE double sooner(double one, double other)
{
    return one < other ? one : other;
}

// A full-period generator modulo a power of two (Knuth, volume 2, theorem A) ...
INLINE uint64_t next_state(uint64_t state, uint64_t mask)
{
    return (state * 1664525 + 1013904223) & mask;
}

// ... and a bijection: the number that a state stands for. All states have every number of a range once; those beyond
// the range are skipped.
INLINE uint64_t scrambled(uint64_t state, uint64_t mask, uint64_t shift)
{
    uint64_t x = state ^ (state >> shift);
    x = (x * 0x2C1B3C6D) & mask;
    return x ^ (x >> shift);
}

// The number of the next client address and port, or flow: each comes once before any comes again. `at`: the next
// number, or the state of the random order.
INLINE int64_t next_tuple(int64_t *at, const struct parameters *p)
{
    if (!p->random_order) {
        int64_t number = *at;
        *at = number + 1 < p->tuples ? number + 1 : 0;
        return number;
    }
    uint64_t state = (uint64_t)*at, mask = (uint64_t)p->tuple_mask, number;
    do {
        state = next_state(state, mask);
        number = scrambled(state, mask, (uint64_t)p->tuple_shift);
    } while (number >= (uint64_t)p->tuples);
    *at = (int64_t)state;
    return (int64_t)number;
}

// When the next one may go out at the earliest, after one that goes out now. `shortest`: the shortest interval.
INLINE double next_allowed(double not_before, double now, double slack, double shortest)
{
    return later(not_before, now - slack) + shortest;
}

// The interval to the next one: longer on the ramp, where the rate climbs, but not beyond its end, as a slow rate has
// few in a trial.
INLINE double step(double interval, double due, double start, double ramp_end)
{
    if (due >= ramp_end)
        return interval;
    double share = later(0.02, (due - start) / (ramp_end - start));
    return later(interval, sooner(interval / share, ramp_end - due));
}

// The pace of one direction: when the next one is due, and when it may go out.
struct pace {
    double interval;
    double shortest;
    double slack;
    double start;
    double ramp_end;
    double due;
    double not_before;
};

INLINE struct pace pace_of(const struct parameters *p, int64_t start, double first, int burst)
{
    return (struct pace){
        .interval = p->interval,
        .shortest = p->interval / CATCH_UP,
        .slack = later(p->interval * burst, (double)p->slack),
        .start = (double)start,
        .ramp_end = (double)(start + p->ramp),
        .due = (double)start + first,
        .not_before = (double)start + first,
    };
}

INLINE void went_out(struct pace *pace, int64_t now)
{
    pace->due += step(pace->interval, pace->due, pace->start, pace->ramp_end);
    pace->not_before = next_allowed(pace->not_before, (double)now, pace->slack, pace->shortest);
}

// The phases of a trial.
enum stage { RAMP_UP, SUSTAIN, LINGER };

struct stages {
    enum stage stage;
    int64_t away; // cycles outside of the kernel between its calls, in which its clock stands
    int64_t start;
    int64_t sustain;
    int64_t end; // these are far away until the sustain phase has begun
    int64_t latest;
    int64_t give_up;
    int64_t next_point;
    int64_t previous; // look at the clock
    int64_t calls; // of the crew, this one with them
    bool finished;
};

INLINE int64_t now_of(const struct stages *t)
{
    return cycles() - t->away;
}

INLINE bool is_stopped(const struct run *run)
{
    return __atomic_load_n(&run->state.stop, __ATOMIC_RELAXED);
}

// Count this thread in, and return the number of calls so far, this one included.
INLINE int64_t count_in(const struct run *run, int64_t *counter)
{
    return (__atomic_fetch_add(counter, 1, __ATOMIC_ACQ_REL) >> run->parameters.thread_shift) + 1;
}

INLINE bool all_are_in(const struct run *run, const int64_t *counter, int64_t calls)
{
    return __atomic_load_n(counter, __ATOMIC_ACQUIRE) >= calls << run->parameters.thread_shift;
}

// Note that this thread has finished. True where all threads have: until then a ring may have to be left to another
// one.
INLINE bool all_finished(struct run *run, struct stages *t)
{
    struct crew *crew = run->parameters.crew;
    if (!crew)
        return true;
    if (!t->finished)
        count_in(run, &crew->finished);
    t->finished = true;
    return all_are_in(run, &crew->finished, t->calls);
}

// Certain losses of all threads, of what counts. `own`: this thread's.
INLINE int64_t lost_of_all(const struct run *run, int64_t own)
{
    const struct parameters *p = &run->parameters;
    if (!p->crew || !p->most_lost)
        return own;
    int64_t lost = 0;
    __atomic_store_n(&p->crew->lost[p->thread][0], own, __ATOMIC_RELAXED);
    for (int64_t thread = 0; thread < 1 << p->thread_shift; thread++)
        lost += __atomic_load_n(&p->crew->lost[thread][0], __ATOMIC_RELAXED);
    return lost;
}

// Begin a call, all threads at the same time.
static inline struct stages enter(struct run *run)
{
    const struct parameters *p = &run->parameters;
    struct stages t = {.end = UNTIL_THEN, .latest = UNTIL_THEN};
    if (p->crew) {
        t.calls = count_in(run, &p->crew->entered);
        while (!all_are_in(run, &p->crew->entered, t.calls) && !is_stopped(run))
            _mm_pause();
    }
    if (run->state.left_at)
        run->state.away += cycles() - run->state.left_at;
    t.away = run->state.away;
    t.give_up = t.next_point = UNTIL_THEN;
    t.start = t.previous = now_of(&t);
    t.sustain = t.start + p->ramp + p->settle;
    return t;
}

static inline void leave(struct run *run, struct stages *t)
{
    if (t->stage < SUSTAIN)
        run->marks[0] = run->counts;
    if (t->stage < LINGER)
        run->marks[1] = run->counts;
    all_finished(run, t);
    run->state.untaken = frames_to_take(&run->parameters, 2);
    run->state.left_at = cycles();
}

// Look at the clock. Returns the time since the look before.
INLINE int64_t look(struct run *run, struct stages *t, int64_t *now)
{
    *now = now_of(t);
    int64_t pause = *now - t->previous;
    if (pause > run->state.longest_pause)
        run->state.longest_pause = pause;
    t->previous = *now;
    return pause;
}

static inline void link_work(struct run *run, int sign)
{
    for (int64_t number = 0; number < run->parameters.link_count; number++) {
        const struct link_thread *link = run->parameters.links + number;
        run->state.link_busy += sign * __atomic_load_n(&link->busy, __ATOMIC_RELAXED);
        run->state.link_frames += sign * __atomic_load_n(&link->frames, __ATOMIC_RELAXED);
        run->state.link_refused += sign * __atomic_load_n(&link->refused, __ATOMIC_RELAXED);
    }
}

// True where the sustain phase begins. What is due before it goes out first: it is not part of the load, and a DUT that
// is to know every flow has to see all of them. `due`: when the next one is due.
INLINE bool ramp_up_is_over(const struct stages *t, int64_t now, double due, const struct parameters *p)
{
    int64_t patience = MORE_RAMP_UPS * (p->ramp + p->settle);
    return now >= t->sustain && (due >= (double)t->sustain || now >= t->sustain + patience);
}

// Begin the sustain phase. Returns its delay against the plan. However late it begins, it has its whole length.
static inline int64_t begin_counting(struct run *run, struct stages *t, int64_t now)
{
    const struct parameters *p = &run->parameters;
    struct state *s = &run->state;
    run->marks[0] = run->counts;
    s->counted_from = now;
    s->longest_pause = 0;
    s->timing = p->times_messages;
    s->lag = now - t->sustain;
    link_work(run, -1);
    t->stage = SUSTAIN;
    t->sustain = now;
    t->end = now + p->sustain;
    t->next_point = now + p->timeline_step;
    t->latest = t->end + p->latest;
    t->give_up = t->end + p->linger;
    return s->lag;
}

// End the sustain phase.
static inline void end_counting(struct run *run, struct stages *t, int64_t now)
{
    run->marks[1] = run->counts;
    run->state.counted_until = now;
    run->state.sustain_pause = run->state.longest_pause;
    run->state.timing = 0;
    link_work(run, 1);
    t->stage = LINGER;
}

// End a trial early that nothing can make good any more. `lost`: this thread's certain losses of what counts; `linger`:
// how long to wait after the end.
static inline void end_early(struct run *run, struct stages *t, int64_t now, int64_t lost, int64_t linger)
{
    const struct parameters *p = &run->parameters;
    bool is_lost = 0 < p->most_lost && p->most_lost < lost_of_all(run, lost);
    if (!is_lost || now < t->sustain + p->earliest || now >= t->end - p->least_saved)
        return;
    t->end = t->latest = now;
    t->give_up = now + linger;
    run->state.ended_after = now - t->sustain;
}

// Note the delay, in cycles, of a connection or packet that counts.
INLINE void note_late(struct run *run, double late)
{
    int64_t by = (int64_t)late;
    if (by > run->state.late_max)
        run->state.late_max = by;
    if (by > run->parameters.late_limit)
        run->state.late_count++;
}

// How many were due and never begun: they count as intended, and as late. An early end leaves none.
static inline int64_t never_sent(struct run *run, const struct stages *t, const struct pace *pace)
{
    double end = (double)t->end;
    if (pace->due >= end || run->state.ended_after)
        return 0;
    run->state.late_max = most(run->state.late_max, (int64_t)(end - pace->due));
    return (int64_t)((end - later(pace->due, (double)t->sustain)) / pace->interval) + 1;
}

// Note whether most of what is under way waits for the kernel, not for the DUT. `looks`: the looks that this one stands
// for.
static inline void look_at_own_rings(struct run *run, int64_t under_way, int64_t looks)
{
    uint64_t held = 0;
    for (int side = CLIENT; side <= SERVER; side++) {
        const struct port *port = &run->parameters.ports[side];
        for (int64_t queue = 0; queue < port->rx_rings; queue++)
            held += polls(&run->parameters, side, queue) ? backlog(port->rx + queue) : 0;
    }
    run->state.looks += looks;
    if (2 * (int64_t)held > under_way)
        run->state.looks_held += looks;
}

// The number of looks that are due, one every `every` cycles: a late look stands for those that were left out. 0: none
// is.
INLINE int64_t looks_due(int64_t *next, int64_t now, int64_t every)
{
    if (now < *next)
        return 0;
    int64_t looks = 1 + (now - *next) / every;
    *next = now + every;
    return looks;
}

// The bin of a number of units: 64 bins of one unit, then 32 of two, 32 of four and so on.
INLINE int bin_of(uint32_t units)
{
    if (units < 64)
        return (int)units;
    int exponent = 26 - __builtin_clz(units);
    return (exponent << 5) + (int)(units >> exponent);
}

// Count a time, `took` units, in a histogram.
INLINE void note_time(struct run *run, int histogram, uint32_t took)
{
    run->histograms[histogram][bin_of(took)]++;
    if (took > run->counts.longest[histogram])
        run->counts.longest[histogram] = took;
}

// Count the latency, `took` units, of a message or packet that `side` sent.
INLINE void note_latency(struct run *run, int side, uint32_t took)
{
    struct counters *counts = &run->counts;
    int64_t change = (int64_t)took - counts->latency_last[side];
    note_time(run, MESSAGE + side, took);
    if (counts->timed[side])
        counts->jitter_sum[side] += change < 0 ? -change : change;
    counts->latency_last[side] = took;
    counts->timed[side]++;
}

// Note the points of the timeline that are due by `until`.
static inline void note_points(struct run *run, struct stages *t, int64_t until)
{
    struct state *s = &run->state;
    for (; t->next_point <= until; t->next_point += run->parameters.timeline_step) {
        if (s->points >= run->point_count)
            continue;
        run->points[s->points].counts = run->counts;
        run->points[s->points].active = s->active;
        run->counts.setup_max = 0;
        s->points++;
    }
}

#endif
