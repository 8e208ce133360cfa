// The loop for connections: each thread drives both ports until the trial is over.
//
// In an open loop, connections begin on a schedule that does not yield to a slow DUT. In a closed loop, a fixed number
// is open at once, and each that ends begins the next. A frame that meets a full ring of the DUT is lost there and
// counted as the DUT's miss (what a NIC calls imissed). Nothing is retransmitted: a connection that loses a packet
// fails, which is stricter than TCP and what a loss ratio is about.
//
// The loop may be left and entered again with its state: what is under way waits, and no timer counts the time in
// between.
#include "ends.h"
#include "population.h"

// Open connections of the population that are due by now, a burst at most.
static void open_population(struct run *run, int64_t now, int64_t start)
{
    const struct parameters *p = &run->parameters;
    struct state *s = &run->state;
    int64_t elapsed = now - start;
    int64_t wanted = (int64_t)((double)p->population * opened_share(elapsed, p->server_wait, p->opening_waits));
    for (int begun = 0; s->opened < wanted && begun < BURST;) {
        int64_t messages = messages_left(p, s->opened++, elapsed, p->interval);
        if (!messages)
            continue;
        begin(run, now, false, least(messages, p->messages));
        begun++;
    }
}

// Messages of the next connection.
INLINE int64_t next_messages(struct run *run)
{
    const struct parameters *p = &run->parameters;
    return is_of_share(&run->state.short_debt, p->short_per_million) ? p->short_messages : p->messages;
}

// Begin the connections that a closed loop has room for, a burst at most.
static void fill(struct run *run, int64_t now, bool counted)
{
    int64_t under_way = run->parameters.under_way;
    for (int begun = 0; run->state.active < under_way && begun < BURST; begun++) {
        int64_t number = run->state.begun, messages = next_messages(run);
        // The first connections have fewer messages, so that they end as in the middle of a loop: not all at once, and
        // in an order that jumps.
        if (number < under_way && messages)
            messages = 1 + number * STRIDE % under_way * messages / under_way;
        int64_t active = run->state.active;
        begin(run, now, counted, messages);
        if (run->state.active == active) // no record is free
            break;
    }
}

// Begin the connections that are due. `until`: those that are due later do not belong to this phase.
static void begin_due(struct run *run, const struct stages *t, struct pace *pace, int64_t now, double until)
{
    for (int begun = 0; begun < BURST; begun++) {
        if (pace->due > (double)now || pace->not_before > (double)now || pace->due >= until)
            return;
        bool counted = pace->due >= (double)t->sustain;
        if (counted) {
            note_late(run, (double)now - pace->due);
            run->counts.intended[CLIENT]++;
        }
        begin(run, now, counted, next_messages(run));
        went_out(pace, now);
    }
}

// Connections that count and are certainly lost. A packet that met a full ring dooms its connection, which fails only
// at its timeout: the larger of both numbers, so that no connection counts twice.
static int64_t lost(const struct counters *counts)
{
    int64_t failed = 0;
    for (int cause = 0; cause < CAUSES; cause++)
        failed += counts->failed[cause];
    return most(failed, counts->counted_missed);
}

// Take the frames off a port's rings and count them, without an answer.
static void discard(struct run *run, int side)
{
    const struct port *port = &run->parameters.ports[side];
    for (int64_t queue = 0; queue < port->rx_rings; queue++) {
        if (!polls(&run->parameters, side, queue))
            continue;
        struct ring *ring = port->rx + queue;
        uint32_t waiting = frames_waiting(ring, UINT16_MAX);
        for (uint32_t place = 0; place < waiting; place++) {
            run->counts.rx_packets[side]++;
            run->counts.rx_bytes[side] += frame_at(ring, place).length;
        }
        give_back(ring, waiting);
    }
}

// The checks of a tick. `looks`: the ticks that this one stands for.
static void look_around(struct run *run, struct stages *t, int64_t now, bool sweeps, int64_t looks)
{
    const struct parameters *p = &run->parameters;
    struct state *s = &run->state;
    if (sweeps)
        sweep(run, now);
    if (t->stage != SUSTAIN)
        return;
    s->active_sum += s->active;
    s->active_samples++;
    s->active_max = most(s->active_max, s->active);
    note_points(run, t, now);
    if (p->under_way)
        look_at_own_rings(run, s->active, looks);
    end_early(run, t, now, lost(&run->counts), p->short_linger);
}

// Run a trial: ramp up, sustain, ramp down. Returns when it is over or stopped. A later call with the same state
// continues with what was under way.
void run_connections(struct run *run)
{
    const struct parameters *p = &run->parameters;
    struct state *s = &run->state;
    if (s->left_at == 0)
        link_free(run);
    struct stages t = enter(run);
    struct pace pace = pace_of(p, t.start, p->first, BURST);
    double half_open_due = (double)t.start;
    int64_t next_tick = t.start, next_sweep = t.start, now;
    if (p->under_way) { // all failures count: two marks give those of the sustain phase
        s->failures_from = ((t.start >> p->tick_shift) - 0x40000000) & 0xFFFFFFFF;
        s->failures_for = 0x80000000;
    }
    for (;;) {
        int64_t pause = look(run, &t, &now);
        if (p->under_way && pause > p->late_limit)
            // Connections that waited for this loop, not for the DUT, get as much more time to make progress.
            next_sweep = most(next_sweep, now + pause);
        if (t.stage == RAMP_UP && ramp_up_is_over(&t, now, pace.due, p)) {
            pace.due += (double)begin_counting(run, &t, now);
            next_tick = now;
            if (p->population) {
                s->failures_from = (t.sustain >> p->tick_shift) & 0xFFFFFFFF;
                s->failures_for = p->sustain >> p->tick_shift;
            }
        }
        if (t.stage == SUSTAIN && now >= t.end) {
            end_counting(run, &t, now);
            note_points(run, &t, t.end);
        }
        if (p->under_way && now < t.end)
            fill(run, now, t.stage == SUSTAIN);
        if (s->opened < p->population)
            open_population(run, now, t.start);
        if (now < t.latest)
            begin_due(run, &t, &pace, now, (double)(t.stage == RAMP_UP ? t.sustain : t.end));
        if (p->half_open && half_open_due <= (double)now && now < t.end)
            half_open_due = send_due_syns(run, half_open_due, now);
        send_due_replies(run, now);
        poll_server(run, t.away);
        poll_client(run, t.away);
        int64_t looks = looks_due(&next_tick, now, INT64_C(1) << p->tick_shift);
        if (looks) {
            look_around(run, &t, now, now >= next_sweep, looks);
            if (is_stopped(run))
                break;
        }
        bool begun_all = pace.due >= (double)t.end || now >= t.latest;
        if (t.stage == LINGER && ((s->active == 0 && begun_all && all_finished(run, &t)) || now >= t.give_up))
            break;
    }
    for (int64_t quiet = cycles() + p->hush; s->active > 0 && cycles() < quiet;) {
        discard(run, CLIENT);
        discard(run, SERVER);
    }
    if (p->population) // most live on, and those that failed in the end count as well
        sweep_all(run, now);
    leave(run, &t);
    run->counts.intended[CLIENT] += never_sent(run, &t, &pace);
}
