// One connection: its frames, its times, its end or failure; and the record that a tag names.
#ifndef CONNECTION_H
#define CONNECTION_H

#include "frames.h"
#include "pace.h"

// States of the server end.
enum { LISTENING, SYN_RECEIVED, SERVING, LAST_ACK, FIN_WAIT, SERVER_DONE };

// Flags: begun in the sustain phase (and so counted), over UDP, in the queue of waiting replies, with a first reply,
// with timed messages.
enum { COUNTED = 1, OVER_UDP = 2, REPLY_WAITS = 4, REPLIED = 8, TIMED = 16 };

#define SLOT_MASK ((1u << SLOT_BITS) - 1)
_Static_assert(sizeof(struct connection) == 64, "a cache line");

INLINE struct connection *connection_at(const struct run *run, int64_t slot)
{
    return (struct connection *)run->parameters.records + slot;
}

INLINE uint32_t tag_for(const struct run *run, int64_t slot)
{
    return (uint32_t)of_all(&run->parameters, slot) | (uint32_t)run->parameters.salt;
}

INLINE uint32_t ticks_of(const struct run *run, int64_t now)
{
    return (uint32_t)(now >> run->parameters.tick_shift);
}

INLINE uint32_t units_of(int64_t now)
{
    return (uint32_t)(now >> UNIT_SHIFT);
}

// Chain all records into the list of free ones, lowest first.
static inline void link_free(struct run *run)
{
    int64_t count = run->parameters.record_count;
    for (int64_t slot = 0; slot < count; slot++) {
        struct connection *c = connection_at(run, slot);
        c->states[CLIENT] = FREE;
        c->next = slot + 1 < count ? (uint32_t)slot + 1 : NOBODY;
    }
    run->state.free_head = 0;
}

// True where a frame goes from the peer of an end to this end.
INLINE bool is_from_peer(const struct received *received, const struct end *end)
{
    const struct route *route = &received->route;
    return route->source == end->peer && route->destination == end->address && route->ports == swap_ports(end->ports);
}

// True where a ring has room for a frame of a connection; otherwise count a miss of the DUT.
INLINE bool may_send(struct run *run, struct ring *ring, const struct connection *c)
{
    if (__builtin_expect(has_room(ring), 1))
        return true;
    run->counts.dut_missed++;
    if (c->flags & COUNTED)
        run->counts.counted_missed++;
    return false;
}

// Put the frame in the next buffer of a port's ring, and count it.
INLINE void put_counted(struct run *run, struct ring *ring, int side, uint32_t length)
{
    put(ring, length);
    run->counts.tx_packets[side]++;
    run->counts.tx_bytes[side] += length;
}

INLINE struct route route_of(const struct end *end)
{
    return (struct route){end->address, end->peer, end->ports};
}

// Send a TCP segment from one end, with a message or without, and advance its sequence number.
INLINE void send_tcp(
    struct run *run, struct ring *ring, struct connection *c, int side, uint32_t tag, uint8_t flags, bool message)
{
    const struct parameters *p = &run->parameters;
    struct end *end = &c->ends[side];
    struct segment segment = {
        .sequence = end->sequence,
        .acknowledged = end->acknowledged,
        .flags = flags,
        .value = tag,
        .echo = flags == SYN ? 0 : tag,
        .filler = side == CLIENT ? REQUEST_FILLER : REPLY_FILLER,
    };
    if (message) {
        segment.payload = (uint16_t)(side == CLIENT ? p->request_bytes : p->reply_bytes);
        segment.payload_sum = (uint64_t)(side == CLIENT ? p->request_sum : p->reply_sum);
    }
    if (may_send(run, ring, c)) {
        struct route route = route_of(end);
        const struct template *template = template_of(p, side, pair_of(p, c->queue));
        uint32_t length;
        if (p->ipv6)
            length = write_tcp(next_buffer(ring), true, template, &route, &segment);
        else
            length = write_tcp(next_buffer(ring), false, template, &route, &segment);
        put_counted(run, ring, side, length);
    }
    end->sequence += segment.payload + (flags & (SYN | FIN) ? 1 : 0);
}

// Send a UDP datagram from one end. Its payload begins with the tag.
INLINE void send_udp(struct run *run, struct ring *ring, struct connection *c, int side, uint32_t tag)
{
    const struct parameters *p = &run->parameters;
    if (!may_send(run, ring, c))
        return;
    struct route route = route_of(&c->ends[side]);
    const struct template *template = template_of(p, side, pair_of(p, c->queue));
    uint16_t bytes = (uint16_t)(side == CLIENT ? p->udp_request_bytes : p->udp_reply_bytes);
    uint64_t sum = tag + (uint64_t)(side == CLIENT ? p->udp_request_sum : p->udp_reply_sum);
    uint8_t *at = next_buffer(ring), *payload;
    if (p->ipv6)
        payload = write_udp(at, true, template, &route, bytes, sum);
    else
        payload = write_udp(at, false, template, &route, bytes, sum);
    memcpy(payload, &tag, sizeof tag);
    write_filler(payload + sizeof tag, bytes - sizeof tag, side == CLIENT ? REQUEST_FILLER : REPLY_FILLER);
    put_counted(run, ring, side, (uint32_t)(payload - at) + bytes);
}

// Note when a timed message was sent. Otherwise the record keeps the time at which the connection began.
INLINE void message_sent(struct connection *c, int64_t now)
{
    if (c->flags & TIMED)
        c->started = units_of(now);
}

// Note the arrival of a message that `side` sent.
INLINE void message_taken(struct run *run, struct connection *c, int side, int64_t now)
{
    c->progress = ticks_of(run, now);
    if (c->flags & TIMED && run->state.timing)
        note_latency(run, side, units_of(now) - c->started);
}

// Free a record. Last in, first out: so few records are in use that they stay in the caches.
INLINE void release(struct run *run, struct connection *c, int64_t slot)
{
    c->states[CLIENT] = FREE;
    run->state.active--;
    if (run->parameters.ended_by == NEVER) // held ones stand in the order in which they began
        return;
    c->next = (uint32_t)run->state.free_head;
    run->state.free_head = slot;
}

INLINE void complete(struct run *run, struct connection *c, int64_t slot)
{
    run->counts.all_completed++;
    if (c->flags & COUNTED)
        run->counts.completed[CLIENT]++;
    release(run, c, slot);
}

// Fail a connection. The failure counts where the connection began in the sustain phase; or, where failures count by
// their time, where the connection's last progress fell into that phase.
static inline void fail(struct run *run, struct connection *c, int64_t slot, int cause)
{
    const struct state *s = &run->state;
    bool counted = c->flags & COUNTED;
    run->counts.all_failed++;
    if (s->failures_for)
        counted = c->progress - (uint32_t)s->failures_from < s->failures_for;
    if (counted) {
        run->counts.failed[cause]++;
        run->counts.pair_lost[pair_of(&run->parameters, c->queue)]++;
    }
    if (c->flags & REPLY_WAITS)
        c->states[CLIENT] = DEAD; // still a link of the queue of replies
    else
        release(run, c, slot);
}

// Note the connect time when the SYN-ACK comes. (UDP has none: its first reply may have waited.)
INLINE void established(struct run *run, struct connection *c, int64_t now)
{
    c->progress = ticks_of(run, now);
    if (!(c->flags & COUNTED))
        return;
    uint32_t took = units_of(now) - c->started;
    run->counts.tcp_established++;
    run->counts.setup_sum += took;
    if (took > run->counts.setup_max)
        run->counts.setup_max = took;
    note_time(run, CONNECT, took);
}

// Note how long after the SYN the first and the last reply over TCP came, of a connection that counts and whose record
// has kept the time of its SYN.
INLINE void note_reply(struct run *run, struct connection *c, int64_t now)
{
    bool first = !(c->flags & REPLIED), last = c->left[CLIENT] == 0;
    c->flags |= REPLIED;
    if (!(c->flags & COUNTED) || c->flags & TIMED)
        return;
    uint32_t took = units_of(now) - c->started;
    if (first)
        note_time(run, FIRST_BYTE, took);
    if (last)
        note_time(run, LAST_BYTE, took);
}

// True for `per_million` of a million calls, spread evenly. `debt`: the remainder from call to call.
INLINE bool is_of_share(int64_t *debt, int64_t per_million)
{
    *debt += per_million;
    if (*debt < 1000000)
        return false;
    *debt -= 1000000;
    return true;
}

INLINE int64_t next_of(int64_t *at, int64_t count)
{
    int64_t number = *at;
    *at = number + 1 < count ? number + 1 : 0;
    return number;
}

// The number of the record that a tag names; -1 where it names none in use.
INLINE int64_t slot_of(const struct run *run, uint32_t tag)
{
    const struct parameters *p = &run->parameters;
    int64_t number = tag & SLOT_MASK, slot = of_own(p, number);
    if ((tag & ~SLOT_MASK) != (uint32_t)p->salt || thread_of(p, number) != p->thread || slot >= run->state.highest)
        return -1;
    uint8_t state = connection_at(run, slot)->states[CLIENT];
    return state != FREE && state != DEAD ? slot : -1;
}

#endif
