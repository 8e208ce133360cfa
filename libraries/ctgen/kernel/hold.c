// Connections that are held open: a phase opens many, or sends a request on each. Between calls they stay open, and
// nothing is sent.
#include "ends.h"

// Send a request on a connection. False where it is not open.
static bool ask(struct run *run, int64_t slot, int64_t now)
{
    struct connection *c = connection_at(run, slot);
    struct ring *ring = own_ring(&run->parameters, CLIENT, c->queue);
    if (c->states[CLIENT] != HELD)
        return false;
    c->states[CLIENT] = AWAITS_REPLY;
    c->left[CLIENT] = c->left[SERVER] = 1;
    c->started = units_of(now);
    if (c->flags & OVER_UDP)
        send_udp(run, ring, c, CLIENT, tag_for(run, slot));
    else
        send_tcp(run, ring, c, CLIENT, tag_for(run, slot), PSH | ACK, true);
    return true;
}

// The connections that a phase begins, or asks, in the order of their records.
struct queue {
    int64_t cursor; // the next connection
    int64_t tail; // the oldest connection in the window
    int64_t in_a_row; // connections before the tail without an answer in time
};

// Move the tail beyond connections that no longer occupy the window.
static void pass_over(const struct run *run, const struct phase *phase, struct queue *queue, int64_t now)
{
    for (; queue->tail < queue->cursor; queue->tail++) {
        const struct connection *c = connection_at(run, queue->tail);
        uint8_t state = c->states[CLIENT];
        if (state == AWAITS_REPLY || (state == SYN_SENT && !phase->asks)) {
            if (units_of(now) - c->started <= phase->patience >> UNIT_SHIFT)
                return;
            queue->in_a_row++;
        } else if (state == HELD) {
            queue->in_a_row = 0;
        }
    }
}

// Begin a connection, or ask the one at the cursor. False where there is none to begin or to ask.
static bool try_next(struct run *run, const struct phase *phase, const struct queue *queue, int64_t now)
{
    if (phase->asks)
        return ask(run, queue->cursor, now);
    if (run->state.free_head == NOBODY)
        return false;
    struct connection *c = connection_at(run, run->state.free_head);
    begin(run, now, true, 1);
    if (!(c->flags & OVER_UDP))
        c->left[CLIENT] = 0; // nothing is asked yet
    return true;
}

static int64_t answers_of(const struct run *run, const struct phase *phase)
{
    const struct counters *counts = &run->counts;
    return phase->asks ? counts->all_completed : counts->tcp_established + counts->udp_established;
}

// Open connections, or ask those that are open. Returns when all have answered, at the timeout, or when stopped.
void run_phase(struct run *run, struct phase *phase)
{
    struct state *s = &run->state;
    if (s->left_at == 0)
        link_free(run);
    struct queue queue = {.cursor = phase->asks ? 0 : s->begun, .tail = phase->asks ? 0 : s->begun};
    int64_t last = phase->asks ? s->highest : least(queue.cursor + phase->wanted, run->parameters.record_count);
    int64_t before = answers_of(run, phase), seen = 0, quiet_from = 0;
    int64_t start = cycles(), sent_at = start, due = start;
    if (phase->asks)
        s->asked_from = units_of(start);
    phase->gave_up = phase->tried = phase->first = phase->last = 0;
    while (!is_stopped(run)) {
        int64_t now = cycles();
        pass_over(run, phase, &queue, now);
        if (phase->give_up && queue.in_a_row >= phase->give_up) {
            phase->gave_up = 1;
            last = queue.cursor;
        }
        for (int begun = 0; begun < BURST && queue.cursor < last && due <= now;) {
            if (queue.cursor - queue.tail >= phase->window)
                break;
            bool tried = try_next(run, phase, &queue, now);
            queue.cursor++;
            if (!tried)
                continue;
            phase->tried++;
            begun++;
            sent_at = now;
            due += phase->interval;
        }
        due = most(due, now - BURST * phase->interval); // after a delay, one BURST at once at most
        poll_server(run, 0);
        poll_client(run, 0);
        int64_t answered = answers_of(run, phase) - before;
        if (answered > seen) {
            phase->last = cycles() - start;
            if (seen == 0)
                phase->first = phase->last;
            seen = answered;
        }
        bool over = queue.cursor >= last && (seen >= phase->tried || now - sent_at > phase->timeout);
        if (quiet_from == 0 && over)
            quiet_from = now;
        if (quiet_from && now - quiet_from > run->parameters.hush) // the last acknowledgments reach the DUT, and the server
            break;
    }
    s->untaken = frames_to_take(&run->parameters, 2);
    s->left_at = cycles();
}
