// Both ends of a connection: how each reacts to a frame that it takes, and the replies that wait.
//
// The client opens, sends requests, and ends as the profile says. The server answers the address that it sees.
#include "ends.h"

#include "neighbours.h"

// Begin a connection of `messages` messages: its first packet goes out, or is lost at the DUT's full ring.
void begin(struct run *run, int64_t now, bool counted, int64_t messages)
{
    const struct parameters *p = &run->parameters;
    struct state *s = &run->state;
    int64_t slot = s->free_head;
    if (slot == NOBODY) {
        run->counts.no_record++;
        return;
    }
    struct connection *c = connection_at(run, slot);
    s->free_head = c->next;
    if (s->free_head != NOBODY)
        prefetch(connection_at(run, s->free_head));
    s->highest = most(s->highest, slot + 1);
    s->active++;
    uint32_t scattered = (uint32_t)s->begun++ * 2654435761u;
    bool is_udp = is_of_share(&s->udp_debt, p->udp_per_million);
    run->counts.attempted[CLIENT] += counted;
    uint64_t who = (uint64_t)of_all(p, next_tuple(&s->tuple, p)), ports = (uint64_t)p->port_count;
    uint16_t port = (uint16_t)((uint64_t)p->port_min + who % ports);
    int64_t server = p->ports[SERVER].address + next_of(&s->next_server, p->ports[SERVER].addresses);
    int64_t queue = next_of(&s->next_queue, p->queues), pair = pair_of(p, queue);
    run->counts.pair_begun[pair] += counted;
    c->ends[CLIENT] = (struct end){
        .address = swap32((uint32_t)((uint64_t)p->ports[CLIENT].address + who / ports + (uint64_t)pair * PAIR_OFFSET)),
        .peer = swap32((uint32_t)(server + pair * PAIR_OFFSET)),
        .ports = swap16(port) | (uint32_t)swap16((uint16_t)(is_udp ? p->udp_port : p->tcp_port)) << 16,
        .sequence = scattered,
    };
    c->ends[SERVER] = (struct end){0}; // nothing is its peer before the first packet comes
    c->left[CLIENT] = c->left[SERVER] = (uint16_t)messages;
    c->states[CLIENT] = is_udp ? AWAITS_REPLY : SYN_SENT;
    c->states[SERVER] = LISTENING;
    bool timed = p->times_messages && p->at_once == 1 && (scattered >> 16) % TIMED_EVERY == 0;
    c->flags = (is_udp ? OVER_UDP : 0) | (counted ? COUNTED : 0) | (timed ? TIMED : 0);
    c->queue = (uint8_t)queue;
    c->started = units_of(now);
    c->progress = ticks_of(run, now);
    struct ring *ring = own_ring(p, CLIENT, queue);
    if (is_udp)
        for (int64_t sent = 0; sent < least(p->at_once, messages); sent++)
            send_udp(run, ring, c, CLIENT, tag_for(run, slot));
    else
        send_tcp(run, ring, c, CLIENT, tag_for(run, slot), SYN, false);
}

// Look at the next records, and fail the connections without progress for too long.
static void look_at(struct run *run, int64_t records, int64_t now)
{
    struct state *s = &run->state;
    uint32_t tick = ticks_of(run, now);
    for (int64_t left = records; left > 0; left--) {
        int64_t slot = next_of(&s->sweep, s->highest);
        struct connection *c = connection_at(run, slot);
        uint8_t state = c->states[CLIENT];
        if (state == FREE || c->flags & REPLY_WAITS)
            continue;
        uint32_t idle = tick - c->progress;
        if (idle <= run->parameters.timeout_ticks || idle > INT32_MAX) // the latter: its last frame was read after `now`
            continue;
        if (state == SYN_SENT)
            fail(run, c, slot, NO_SYN_ACK);
        else if (state == AWAITS_REPLY)
            fail(run, c, slot, NO_REPLY);
        else if (state == FIN_SENT || state == AWAITS_FIN)
            fail(run, c, slot, NO_FIN);
        else
            fail(run, c, slot, NO_LAST_ACK);
    }
}

// Look at some records: at all of them within 512 ticks.
void sweep(struct run *run, int64_t now)
{
    int64_t highest = run->state.highest;
    look_at(run, least(most(64, (highest >> 9) + 1), highest), now);
}

void sweep_all(struct run *run, int64_t now)
{
    look_at(run, run->state.highest, now);
}

// A frame that names a connection, and where the answer to it goes.
struct arrival {
    const struct received *received;
    struct connection *c;
    struct ring *ring;
    int64_t slot;
    int64_t now;
    uint32_t tag;
};

INLINE void client_sends(struct run *run, const struct arrival *a, uint8_t flags, bool message)
{
    send_tcp(run, a->ring, a->c, CLIENT, a->tag, flags, message);
}

INLINE void server_sends(struct run *run, const struct arrival *a, uint8_t flags, bool message)
{
    send_tcp(run, a->ring, a->c, SERVER, a->tag, flags, message);
}

INLINE void server_closes(struct run *run, const struct arrival *a)
{
    a->c->states[SERVER] = FIN_WAIT;
    server_sends(run, a, FIN | ACK, false);
}

// Hold a connection open. `opens`: it has just opened; otherwise its request was answered, which counts in the phase
// that sent it.
INLINE void hold(struct run *run, struct connection *c, bool opens)
{
    c->states[CLIENT] = HELD;
    if (!opens && (int32_t)(c->started - (uint32_t)run->state.asked_from) >= 0)
        run->counts.all_completed++;
}

// End the client's part: close, reset, wait for the server to close, or hold. `opens`: the last segment was the
// SYN-ACK, which no other segment of the client acknowledges.
INLINE void client_ends(struct run *run, const struct arrival *a, bool opens)
{
    switch (run->parameters.ended_by) {
    case BY_SERVER:
        a->c->states[CLIENT] = AWAITS_FIN;
        if (opens)
            client_sends(run, a, ACK, false);
        break;
    case BY_RESET:
        a->c->states[CLIENT] = CLIENT_DONE;
        client_sends(run, a, RST | ACK, false);
        break;
    case NEVER:
        hold(run, a->c, opens);
        client_sends(run, a, ACK, false);
        break;
    default:
        a->c->states[CLIENT] = FIN_SENT;
        client_sends(run, a, FIN | ACK, false);
    }
}

// Send the client's next request.
INLINE void asks(struct run *run, const struct arrival *a)
{
    message_sent(a->c, a->now);
    client_sends(run, a, PSH | ACK, true);
}

// Take a reply over UDP. True where it may come now.
INLINE bool client_takes_datagram(struct run *run, const struct arrival *a)
{
    struct connection *c = a->c;
    if (!(c->flags & OVER_UDP) || c->states[CLIENT] != AWAITS_REPLY)
        return false;
    message_taken(run, c, SERVER, a->now);
    bool opens = !(c->flags & REPLIED);
    if (opens) {
        c->flags |= REPLIED;
        if (c->flags & COUNTED)
            run->counts.udp_established++;
    }
    if (--c->left[CLIENT]) {
        if (c->left[CLIENT] < run->parameters.at_once) // the others are on their way
            return true;
        message_sent(c, a->now);
        send_udp(run, a->ring, c, CLIENT, a->tag);
    } else if (run->parameters.ended_by == NEVER) {
        hold(run, c, opens);
    } else {
        complete(run, c, a->slot);
    }
    return true;
}

// Take a frame from the peer at the client end. True where it may come now.
INLINE bool at_client(struct run *run, const struct arrival *a)
{
    const struct parameters *p = &run->parameters;
    struct connection *c = a->c;
    struct end *end = &c->ends[CLIENT];
    const struct frame *frame = a->received->frame;
    if (a->received->kind == IS_UDP)
        return client_takes_datagram(run, a);
    uint8_t state = c->states[CLIENT], flags = frame->tcp.flags;
    if (flags & RST) {
        fail(run, c, a->slot, RESET);
        return true;
    }
    if (swap32(frame->tcp.acknowledged) != end->sequence)
        return false;
    uint32_t sequence = swap32(frame->tcp.sequence);
    if (state == SYN_SENT) {
        if (flags != (SYN | ACK))
            return false;
        end->acknowledged = sequence + 1;
        established(run, c, a->now);
        if (c->left[CLIENT]) {
            c->states[CLIENT] = AWAITS_REPLY;
            asks(run, a);
        } else {
            client_ends(run, a, true);
        }
        return true;
    }
    if (sequence != end->acknowledged)
        return false;
    if (state == AWAITS_REPLY) {
        int32_t payload = tcp_payload_bytes(a->received);
        if (payload == 0)
            return true; // the server's own acknowledgment, before it waits
        if (payload != p->reply_bytes)
            return false;
        end->acknowledged = sequence + (uint32_t)payload;
        message_taken(run, c, SERVER, a->now);
        c->left[CLIENT]--;
        note_reply(run, c, a->now);
        if (c->left[CLIENT])
            asks(run, a);
        else
            client_ends(run, a, false);
        return true;
    }
    if (flags & FIN && (state == FIN_SENT || state == AWAITS_FIN)) {
        end->acknowledged = sequence + 1;
        c->progress = ticks_of(run, a->now);
        c->states[CLIENT] = CLIENT_DONE;
        client_sends(run, a, state == FIN_SENT ? ACK : FIN | ACK, false);
        return true;
    }
    if (state == CLIENT_DONE && p->ended_by == BY_SERVER && flags == ACK) {
        complete(run, c, a->slot);
        return true;
    }
    return false;
}

// Send the server's reply.
INLINE void replies(struct run *run, const struct arrival *a)
{
    struct connection *c = a->c;
    message_sent(c, a->now);
    if (c->flags & OVER_UDP) {
        send_udp(run, a->ring, c, SERVER, a->tag);
        return;
    }
    server_sends(run, a, PSH | ACK, true);
    if (run->parameters.ended_by == BY_SERVER && c->left[SERVER] == 0)
        server_closes(run, a);
}

// Take a request at the server end: reply now, or after the server's wait.
INLINE void is_asked(struct run *run, const struct arrival *a)
{
    const struct parameters *p = &run->parameters;
    struct state *s = &run->state;
    struct connection *c = a->c;
    c->left[SERVER]--;
    if (p->ack_before_reply && !(c->flags & OVER_UDP))
        server_sends(run, a, ACK, false);
    if (p->server_wait == 0) {
        replies(run, a);
        return;
    }
    // Every reply waits equally long, so the one that was queued first is due first: a queue replaces a timer wheel.
    c->flags |= REPLY_WAITS;
    c->reply_due = units_of(a->now + p->server_wait);
    c->next = NOBODY;
    if (s->waiting_last == NOBODY)
        s->waiting_first = a->slot;
    else
        connection_at(run, s->waiting_last)->next = (uint32_t)a->slot;
    s->waiting_last = a->slot;
}

// Take a frame at the server end, which answers the address that it sees, translated or not. True where the frame may
// come now.
INLINE bool at_server(struct run *run, const struct arrival *a)
{
    const struct parameters *p = &run->parameters;
    struct connection *c = a->c;
    struct end *end = &c->ends[SERVER];
    const struct frame *frame = a->received->frame;
    const struct route *route = &a->received->route;
    bool is_udp = a->received->kind == IS_UDP;
    uint8_t state = c->states[SERVER], flags = is_udp ? 0 : frame->tcp.flags;
    bool opens = state == LISTENING && (is_udp || flags == SYN);
    // The SYN of an earlier connection with this record, which failed, may have come first; this one has the sequence
    // number of the client. (Of a DUT that changes those, the first one opens.)
    if (state == SYN_RECEIVED && flags == SYN && swap32(frame->tcp.sequence) + 1 == c->ends[CLIENT].sequence)
        opens = !is_from_peer(a->received, end);
    if (opens) {
        end->address = route->destination;
        end->peer = route->source;
        end->ports = swap_ports(route->ports);
        c->states[SERVER] = is_udp ? SERVING : SYN_RECEIVED;
        if (!is_udp) {
            uint32_t sequence = swap32(frame->tcp.sequence);
            end->sequence = sequence * 0x9E3779B1 + 0x7F4A7C15;
            end->acknowledged = sequence + 1;
            server_sends(run, a, SYN | ACK, false);
            return true;
        }
    } else if (!is_from_peer(a->received, end)) {
        run->counts.misdirected++;
        return true;
    }
    if (is_udp) {
        if (!c->left[SERVER] || c->flags & REPLY_WAITS) // the DUT doubled one
            return false;
        message_taken(run, c, CLIENT, a->now);
        is_asked(run, a);
        return true;
    }
    uint32_t sequence = swap32(frame->tcp.sequence);
    if (flags & RST) {
        bool due = p->ended_by == BY_RESET && c->states[CLIENT] == CLIENT_DONE && sequence == end->acknowledged;
        if (due)
            complete(run, c, a->slot);
        else
            fail(run, c, a->slot, RESET);
        return true;
    }
    if (sequence != end->acknowledged || swap32(frame->tcp.acknowledged) != end->sequence || flags & SYN)
        return false;
    if (state == SYN_RECEIVED || state == SERVING) {
        int32_t payload = tcp_payload_bytes(a->received);
        c->states[SERVER] = SERVING;
        if (payload == p->request_bytes && c->left[SERVER]) {
            end->acknowledged = sequence + (uint32_t)payload;
            message_taken(run, c, CLIENT, a->now);
            is_asked(run, a);
        } else if (payload == 0 && flags & FIN) {
            c->progress = ticks_of(run, a->now);
            end->acknowledged = sequence + 1;
            c->states[SERVER] = LAST_ACK;
            server_sends(run, a, FIN | ACK, false);
        } else if (payload || flags != ACK) {
            return false;
        } else if (p->ended_by == BY_SERVER && c->left[SERVER] == 0) {
            server_closes(run, a); // without data
        }
        return true;
    }
    if (state == FIN_WAIT && flags & FIN) {
        c->progress = ticks_of(run, a->now);
        end->acknowledged = sequence + 1;
        c->states[SERVER] = SERVER_DONE;
        server_sends(run, a, ACK, false);
        return true;
    }
    if (state == LAST_ACK && c->states[CLIENT] == CLIENT_DONE) {
        complete(run, c, a->slot);
        return true;
    }
    return false;
}

// Replies sent, at most, before the rings are polled again: after a pause many are due, and a ring holds only so many.
#define REPLY_BURST 32

// Send replies whose wait is over, a burst at most.
void send_due_replies(struct run *run, int64_t now)
{
    struct state *s = &run->state;
    for (int count = 0; count < REPLY_BURST && s->waiting_first != NOBODY; count++) {
        int64_t slot = s->waiting_first;
        struct connection *c = connection_at(run, slot);
        if ((units_of(now) - c->reply_due) & 0x80000000)
            return;
        s->waiting_first = c->next;
        if (s->waiting_first == NOBODY)
            s->waiting_last = NOBODY;
        else
            prefetch(connection_at(run, s->waiting_first));
        c->flags &= (uint8_t)~REPLY_WAITS;
        if (c->states[CLIENT] == DEAD) {
            release(run, c, slot);
            continue;
        }
        c->progress = ticks_of(run, now);
        struct ring *ring = own_ring(&run->parameters, SERVER, c->queue);
        replies(run, &(struct arrival){.c = c, .ring = ring, .slot = slot, .now = now, .tag = tag_for(run, slot)});
    }
}

// The tag of half-open connections, whose record number is that of no record of the thread.
INLINE uint32_t half_open_tag(const struct run *run)
{
    return tag_for(run, of_own(&run->parameters, SLOT_MASK));
}

// SYNs sent, at most, before the rings are polled again.
#define SYN_BURST 16

INLINE uint32_t write_either(
    uint8_t *at, const struct parameters *p, int side, int64_t pair, const struct route *route, const struct segment *segment)
{
    const struct template *template = template_of(p, side, pair);
    return p->ipv6 ? write_tcp(at, true, template, route, segment) : write_tcp(at, false, template, route, segment);
}

// Send the SYNs of half-open connections that are due, a burst at most; returns when the next one is due. SYNs that are
// late by more than the slack are not made up for.
double send_due_syns(struct run *run, double due, int64_t now)
{
    const struct parameters *p = &run->parameters;
    struct state *s = &run->state;
    const struct port *client = &p->ports[CLIENT], *server = &p->ports[SERVER];
    due = later(due, (double)(now - p->slack));
    for (int count = 0; count < SYN_BURST && due <= (double)now; count++) {
        due += p->half_open_interval;
        int64_t number = s->half_begun++, who = of_all(p, next_tuple(&s->half_tuple, p));
        struct ring *ring = own_ring(p, CLIENT, number % p->queues);
        int64_t pair = pair_of(p, number % p->queues), offset = pair * PAIR_OFFSET;
        run->counts.half_sent++;
        if (!has_room(ring)) {
            run->counts.half_missed++;
            continue;
        }
        struct route route = {
            .source = swap32((uint32_t)(client->address + client->addresses + who / p->port_count + offset)),
            .destination = swap32((uint32_t)(server->address + number % server->addresses + offset)),
            .ports = swap16((uint16_t)(p->port_min + who % p->port_count))
                | (uint32_t)swap16((uint16_t)p->tcp_port) << 16,
        };
        struct segment syn = {
            .sequence = (uint32_t)number * 2654435761u, .flags = SYN, .value = half_open_tag(run)
        };
        put(ring, write_either(next_buffer(ring), p, CLIENT, pair, &route, &syn));
    }
    return due;
}

// Take a frame that names no record, where it is of a half-open connection: count it, and answer it at the server.
// False for other frames.
static bool take_half_open(
    struct run *run, const struct received *received, uint32_t length, int side, int64_t came_on)
{
    const struct frame *frame = received->frame;
    uint32_t tag = half_open_tag(run);
    if (received->kind != IS_TCP || tag_of(frame, false, side == CLIENT) != tag)
        return false;
    if (frame->tcp.flags != (side == CLIENT ? SYN | ACK : SYN))
        return false;
    run->counts.rx_packets[side]--;
    run->counts.rx_bytes[side] -= length;
    if (side == CLIENT) {
        run->counts.half_answered++;
        return true;
    }
    run->counts.half_passed++;
    const struct parameters *p = &run->parameters;
    int64_t queue = queue_to_answer(p, came_on);
    struct ring *ring = own_ring(p, SERVER, queue);
    if (queue >= 0 && has_room(ring)) {
        const struct route *came = &received->route;
        struct route route = {came->destination, came->source, swap_ports(came->ports)};
        struct segment answer = {
            .sequence = frame->tcp.sequence, // any: as it stands
            .acknowledged = swap32(frame->tcp.sequence) + 1,
            .flags = SYN | ACK,
            .value = tag,
            .echo = tag,
        };
        put(ring, write_either(next_buffer(ring), p, SERVER, pair_of(p, queue), &route, &answer));
    }
    return true;
}

// Frames taken from one ring before the others have their turn.
#define TAKEN 32
// Connection records are fetched this many frames ahead.
#define AHEAD 4

// The tag of a frame that is not checked yet.
INLINE uint32_t tag_at(const uint8_t *at, int side, bool ipv6)
{
    const struct frame *frame = (const struct frame *)(at + (ipv6 ? IPV6_SHIFT : 0));
    uint8_t protocol = ipv6 ? ((const struct ipv6 *)at)->next_header : frame->protocol;
    return tag_of(frame, protocol == UDP, side == CLIENT);
}

// Prefetch the record that a frame names.
INLINE void prefetch_record(const struct run *run, const uint8_t *at, int side, bool ipv6)
{
    int64_t slot = of_own(&run->parameters, tag_at(at, side, ipv6) & SLOT_MASK);
    if (slot < run->state.highest)
        prefetch(connection_at(run, slot));
}

// The thread whose connection a frame names. A frame of no connection of this trial belongs to the thread that finds
// it.
INLINE int64_t thread_at(const struct parameters *p, const uint8_t *at, int side, bool ipv6)
{
    uint32_t tag = tag_at(at, side, ipv6);
    return (tag & ~SLOT_MASK) == (uint32_t)p->salt ? thread_of(p, tag) : p->thread;
}

INLINE void take_one(struct run *run, struct taken taken, int side, bool ipv6, int64_t queue, int64_t now)
{
    const struct port *port = &run->parameters.ports[side];
    struct counters *counts = &run->counts;
    counts->rx_packets[side]++;
    counts->rx_bytes[side] += taken.length;
    struct received received = classify(taken.frame, taken.length, ipv6, port->templates);
    if (received.kind == IS_OTHER) {
        answer(run, side, queue, taken.frame, taken.length);
        return;
    }
    bool is_udp = received.kind == IS_UDP;
    if (received.kind == IS_BROKEN) {
        const struct ipv6 *header = (const struct ipv6 *)taken.frame;
        is_udp = (ipv6 ? header->next_header : received.frame->protocol) == UDP;
    }
    uint32_t tag = tag_of(received.frame, is_udp, side == CLIENT);
    int64_t slot = slot_of(run, tag);
    if (slot < 0) {
        if (received.kind == IS_BROKEN)
            counts->foreign++;
        else if (!run->parameters.half_open || !take_half_open(run, &received, taken.length, side, queue))
            counts->unknown++;
        return;
    }
    struct connection *c = connection_at(run, slot);
    if (received.kind == IS_BROKEN) {
        fail(run, c, slot, BAD_CHECKSUM);
        return;
    }
    struct arrival arrival = {&received, c, own_ring(&run->parameters, side, c->queue), slot, now, tag};
    if (side == SERVER)
        counts->out_of_order += !at_server(run, &arrival);
    else if (!is_from_peer(&received, &c->ends[CLIENT]))
        counts->misdirected++;
    else
        counts->out_of_order += !at_client(run, &arrival);
}

INLINE void poll_as(struct run *run, int64_t away, int side, bool ipv6)
{
    const struct parameters *p = &run->parameters;
    const struct port *port = &p->ports[side];
    int64_t now = cycles() - away;
    for (int64_t queue = 0; queue < port->rx_rings; queue++) {
        if (!polls(p, side, queue))
            continue;
        struct ring *ring = port->rx + queue;
        uint32_t waiting = frames_waiting(ring, TAKEN);
        if (waiting == 0)
            continue;
        struct taken taken[TAKEN];
        for (uint32_t place = 0; place < waiting; place++) {
            taken[place] = frame_at(ring, place);
            prefetch(taken[place].frame);
            prefetch(taken[place].frame + 64);
        }
        int64_t thread = p->thread;
        for (uint32_t place = 0; place < waiting && port->pollers; place++) {
            thread = thread_at(p, taken[place].frame, side, ipv6);
            if (thread != p->thread)
                waiting = place;
        }
        for (uint32_t place = 0; place < waiting && place < AHEAD; place++)
            prefetch_record(run, taken[place].frame, side, ipv6);
        for (uint32_t place = 0; place < waiting; place++) {
            if (place + AHEAD < waiting)
                prefetch_record(run, taken[place + AHEAD].frame, side, ipv6);
            take_one(run, taken[place], side, ipv6, queue, now);
        }
        give_back(ring, waiting);
        if (thread != p->thread)
            leave_ring_to(p, side, queue, thread);
    }
    publish_all(p, side);
}

// Take a burst of frames from each ring of a port, and publish the answers.
void poll_server(struct run *run, int64_t away)
{
    if (run->parameters.ipv6)
        poll_as(run, away, SERVER, true);
    else
        poll_as(run, away, SERVER, false);
}

void poll_client(struct run *run, int64_t away)
{
    if (run->parameters.ipv6)
        poll_as(run, away, CLIENT, true);
    else
        poll_as(run, away, CLIENT, false);
}
