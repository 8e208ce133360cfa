// The loop for packet profiles: each thread offers both directions and takes what comes out.
//
// It is an open loop on a schedule, or a closed one, as for connections, on the same rings; it may be left and entered
// again, too. The server end sends to the address that it has seen, from the address at which it was reached (unless
// servers open flows of their own): translation on the way needs no configuration here, and the DUT gets nothing to
// refuse.
#include "neighbours.h"
#include "pace.h"

// The beginning of a packet's UDP payload.
struct mark {
    uint32_t tag; // trial and flow
    uint32_t sequence; // with the bit that counts it
    uint64_t time;
} __attribute__((packed, may_alias));

#define FLOW_MASK ((1u << FLOW_BITS) - 1)
// The bit of the sequence number that is set where the packet counts.
#define COUNTED 0x80000000
// Frames taken from one ring, and sent in one direction, before the others have their turn.
#define BURST 32
// Flows' records are fetched this many frames ahead.
#define AHEAD 4

_Static_assert(sizeof(struct mark) == PACKET_HEADER_BYTES, "Python knows it too");

// The word and the bit of a packet's number among those that are remembered.
INLINE uint64_t *word_of(struct run *run, int direction, uint32_t sequence)
{
    return &run->came[direction][sequence / 64 % REMEMBERED_WORDS];
}

INLINE uint64_t bit_of(uint32_t sequence)
{
    return UINT64_C(1) << sequence % 64;
}

INLINE struct flow *flow_at(const struct run *run, int64_t number)
{
    return (struct flow *)run->parameters.records + number;
}

// Write a packet; returns its length without FCS.
INLINE uint32_t write_packet(
    uint8_t *at, bool ipv6, const struct parameters *p, const struct template *template, const struct route *route,
    struct mark mark, const struct payload *payload)
{
    uint8_t *frame = p->vlan == NO_VLAN ? at : at + VLAN_TAG_BYTES;
    uint64_t sum = (uint64_t)mark.tag + mark.sequence + (uint32_t)mark.time + (mark.time >> 32) + (uint64_t)payload->sum;
    uint8_t *start = write_udp(frame, ipv6, template, route, (uint16_t)payload->bytes, sum);
    if (p->vlan != NO_VLAN) {
        uint16_t tag[2] = {ETHERTYPE_VLAN, swap16((uint16_t)p->vlan)};
        memcpy(at, template->macs, sizeof template->macs);
        memcpy(at + sizeof template->macs, tag, sizeof tag);
    }
    memcpy(start, &mark, sizeof mark);
    write_filler(start + sizeof mark, (uint32_t)payload->bytes - sizeof mark, FILLER);
    return (uint32_t)(start - at) + (uint32_t)payload->bytes;
}

// Send the next packet of a direction, in all of its fragments. Without room, it is lost at the DUT's full ring.
INLINE void send_as(struct run *run, int side, bool counted, int64_t now, bool ipv6)
{
    const struct parameters *p = &run->parameters;
    struct state *s = &run->state;
    const struct port *client = &p->ports[CLIENT], *server = &p->ports[SERVER];
    int64_t own = next_tuple(&s->flow[side], p);
    uint32_t number = (uint32_t)of_all(p, own), pairs = (uint32_t)p->pairs, pair = (uint32_t)pair_at(p, number);
    run->counts.pair_begun[pair] += counted;
    run->counts.pair_lost[pair] += counted; // until it comes out
    struct route route;
    if (side == CLIENT || p->both_open) {
        uint32_t addresses = (uint32_t)client->addresses, offset = pair * PAIR_OFFSET;
        uint32_t flow = pairs > 1 ? number / pairs : number; // of its pair
        uint32_t one = swap32((uint32_t)client->address + flow % addresses + offset);
        uint32_t other = swap32((uint32_t)server->address + flow % (uint32_t)server->addresses + offset);
        uint16_t port = (uint16_t)((uint32_t)p->port_min + flow / addresses);
        route = (struct route){one, other, swap16(port) | (uint32_t)swap16((uint16_t)p->udp_port) << 16};
        if (side == SERVER)
            route = (struct route){other, one, route.ports};
    } else {
        const struct flow *flow = flow_at(run, own);
        if (!flow->seen) {
            s->lost += counted;
            return; // what the DUT never delivered has no answer: lost, and counted so
        }
        route = (struct route){flow->address, flow->peer, flow->ports};
    }
    uint32_t sequence = (uint32_t)s->sequence[side];
    s->sequence[side] = (sequence + 1) & (COUNTED - 1);
    *word_of(run, side, sequence) &= ~bit_of(sequence); // the packet that had it before is long gone
    int64_t size = s->size[side];
    s->size[side] = size + 1 < p->payload_count ? size + 1 : 0;
    struct ring *ring = own_ring(p, side, p->queues == 1 ? 0 : own % p->queues);
    struct mark mark = {number | (uint32_t)p->salt, sequence | (counted ? COUNTED : 0), (uint64_t)now};
    const struct template *template = template_of(p, side, pair);
    for (uint32_t fragment = 0; fragment < (uint32_t)p->fragments; fragment++) {
        if (!has_room(ring)) {
            run->counts.dut_missed++;
            s->lost += counted;
            return;
        }
        uint8_t *at = next_buffer(ring);
        uint32_t length = write_packet(at, ipv6, p, template, &route, mark, &p->payloads[size]);
        if (p->fragments > 1)
            make_fragment((struct frame *)at, (uint16_t)sequence, fragment, (uint32_t)p->fragments);
        put(ring, length);
        run->counts.tx_packets[side]++;
        run->counts.tx_bytes[side] += length;
    }
    s->sent++;
}

INLINE void send_packet(struct run *run, int side, bool counted, int64_t now)
{
    if (run->parameters.ipv6)
        send_as(run, side, counted, now, true);
    else
        send_as(run, side, counted, now, false);
}

// True where the client has just sent the server's next flow, or is about to: a loop waits for it. A server that
// skipped it would come back to it a whole pass later, when a DUT has forgotten what was not answered. What has not
// come within two windows is lost. Few flows come again soon enough.
static bool waits_for_client(const struct run *run)
{
    const struct parameters *p = &run->parameters;
    int64_t number = run->state.flow[SERVER], soon = 2 * p->under_way;
    if (p->random_order || p->tuples <= soon || flow_at(run, number)->seen)
        return false;
    return (run->state.flow[CLIENT] - number + p->tuples) % p->tuples <= soon;
}

// Count a packet that came out at a port. Its direction is that of the other port.
INLINE void count(struct run *run, const struct received *received, int side, int64_t now)
{
    const struct parameters *p = &run->parameters;
    struct state *s = &run->state;
    struct counters *counts = &run->counts;
    struct mark mark;
    memcpy(&mark, received->frame->udp.payload, sizeof mark);
    int64_t number = mark.tag & FLOW_MASK, own = of_own(p, number);
    if ((mark.tag & ~FLOW_MASK) != (uint32_t)p->salt || thread_of(p, number) != p->thread || own >= p->tuples) {
        counts->unknown++;
        return;
    }
    if (side == SERVER) {
        const struct route *route = &received->route;
        *flow_at(run, own) = (struct flow){route->destination, route->source, swap_ports(route->ports), 1};
    }
    int direction = side == CLIENT ? SERVER : CLIENT;
    uint64_t *came = word_of(run, direction, mark.sequence), bit = bit_of(mark.sequence);
    if (*came & bit) {
        counts->doubled++;
        return;
    }
    *came |= bit;
    counts->all_completed++;
    int64_t sent = (int64_t)mark.time;
    if (p->under_way) {
        if (sent < s->stretch_before) // late, but not lost
            counts->all_failed--;
        else if (sent < s->stretch)
            s->not_come--;
    }
    if (!(mark.sequence & COUNTED))
        return;
    counts->completed[direction]++;
    int64_t pair = pair_at(p, number), *highest = &counts->highest_sequence[2 * pair + direction];
    counts->pair_lost[pair]--;
    // Sequence numbers have 31 bits, and wrap around in a trial of minutes.
    if ((int32_t)((mark.sequence - (uint32_t)*highest) << 1) < 0)
        counts->reordered[direction]++;
    else
        *highest = mark.sequence;
    uint64_t took = mark.time < (uint64_t)now ? (uint64_t)now - mark.time : 0;
    note_latency(run, direction, (uint32_t)(took >> UNIT_SHIFT));
}

// The tag of a frame that is not checked yet.
INLINE uint32_t tag_at(const uint8_t *at, bool ipv6)
{
    const struct frame *frame = (const struct frame *)(at + (ipv6 ? IPV6_SHIFT : 0));
    return load32(frame->udp.payload);
}

// Prefetch the record of the flow that a frame names.
INLINE void prefetch_flow(const struct run *run, const uint8_t *at, bool ipv6)
{
    int64_t own = of_own(&run->parameters, tag_at(at, ipv6) & FLOW_MASK);
    if (own < run->parameters.tuples)
        __builtin_prefetch(flow_at(run, own), 1);
}

// The thread whose flow a waiting frame names. A frame of no flow of this trial belongs to the thread that finds it.
INLINE int64_t thread_at(const struct parameters *p, const struct ring *ring, uint32_t place, uint8_t *frame, bool ipv6)
{
    uint32_t tag_bytes;
    vlan_at(ring, place, frame, &tag_bytes);
    uint32_t tag = tag_at(frame + tag_bytes, ipv6);
    return (tag & ~FLOW_MASK) == (uint32_t)p->salt ? thread_of(p, tag) : p->thread;
}

INLINE void take_packet(struct run *run, const struct ring *ring, uint32_t place, struct taken taken, int side, bool ipv6,
    int64_t now)
{
    const struct parameters *p = &run->parameters;
    const struct port *port = &p->ports[side];
    uint32_t tag_bytes;
    int vlan = vlan_at(ring, place, taken.frame, &tag_bytes);
    uint32_t inner = taken.length > tag_bytes ? taken.length - tag_bytes : 0;
    run->counts.rx_packets[side]++;
    run->counts.rx_bytes[side] += taken.length;
    if (ring->is_socket && vlan != NO_VLAN)
        run->counts.rx_bytes[side] += VLAN_TAG_BYTES; // which the kernel has removed
    struct received received = p->fragments > 1
        ? classify_fragment(taken.frame, taken.length, (uint32_t)p->fragments)
        : classify(taken.frame + tag_bytes, inner, ipv6, port->templates);
    struct ring *answered;
    bool counts = received.kind == IS_UDP && vlan == p->vlan
        && swap16(received.frame->udp.length) >= 8 + PACKET_HEADER_BYTES && received.bytes >= 8 + PACKET_HEADER_BYTES;
    if (counts)
        count(run, &received, side, now);
    else if (received.kind == IS_BROKEN)
        run->counts.failed[BAD_CHECKSUM]++;
    else if ((answered = answer(run, side, ring - port->rx, taken.frame, taken.length)))
        publish(answered);
}

// Take a burst of frames from each ring of a port.
INLINE void poll_as(struct run *run, int64_t away, int side, bool ipv6)
{
    const struct parameters *p = &run->parameters;
    const struct port *port = &p->ports[side];
    for (int64_t queue = 0; queue < port->rx_rings; queue++) {
        if (!polls(p, side, queue))
            continue;
        struct ring *ring = port->rx + queue;
        uint32_t waiting = frames_waiting(ring, BURST);
        if (waiting == 0)
            continue;
        struct taken taken[BURST];
        for (uint32_t place = 0; place < waiting; place++) {
            taken[place] = frame_at(ring, place);
            prefetch(taken[place].frame);
            prefetch(taken[place].frame + 64);
        }
        int64_t now = cycles() - away, thread = p->thread;
        for (uint32_t place = 0; place < waiting && port->pollers; place++) {
            thread = thread_at(p, ring, place, taken[place].frame, ipv6);
            if (thread != p->thread)
                waiting = place;
        }
        for (uint32_t place = 0; place < waiting; place++) {
            if (side == SERVER && place + AHEAD < waiting)
                prefetch_flow(run, taken[place + AHEAD].frame, ipv6);
            take_packet(run, ring, place, taken[place], side, ipv6, now);
        }
        give_back(ring, waiting);
        if (thread != p->thread)
            leave_ring_to(p, side, queue, thread);
    }
}

static void poll_packets(struct run *run, int64_t away)
{
    if (run->parameters.ipv6) {
        poll_as(run, away, SERVER, true);
        poll_as(run, away, CLIENT, true);
    } else {
        poll_as(run, away, SERVER, false);
        poll_as(run, away, CLIENT, false);
    }
}

INLINE int64_t packets_under_way(const struct run *run)
{
    return run->state.sent - run->counts.all_completed - run->counts.all_failed;
}

// Write off packets that were sent a whole stretch of time ago and have not come: a loop would run out of packets. A
// DUT that delivers nothing at all stands still and holds them all, so it gets more time.
static void write_off(struct run *run, int64_t now)
{
    const struct parameters *p = &run->parameters;
    struct state *s = &run->state;
    int64_t passed = now - s->stretch;
    if (passed < p->lost_after || (run->counts.all_completed == s->come_before && passed < p->silence))
        return;
    run->counts.all_failed += most(0, s->not_come);
    s->stretch_before = s->stretch;
    s->stretch = now;
    s->not_come = packets_under_way(run);
    s->come_before = run->counts.all_completed;
}

// Send what a closed loop has room for, half of it in each direction.
static void fill(struct run *run, int64_t now, bool counted)
{
    const struct parameters *p = &run->parameters;
    int64_t free = p->under_way - packets_under_way(run);
    int64_t odd = run->state.sent & 1; // whose turn it is where the halves are not equal
    for (int side = CLIENT; side < p->directions; side++) {
        int64_t share = p->directions == 1 ? free : (free + (odd ^ side)) >> 1;
        for (int64_t place = 0; place < least(BURST, share); place++) {
            if (side == SERVER && !p->both_open && waits_for_client(run))
                break;
            int64_t before = run->state.sent;
            send_packet(run, side, counted, now);
            if (run->state.sent == before) // a full ring, or a flow that the server has not seen
                break;
            run->counts.intended[side] += counted;
            run->counts.attempted[side] += counted;
        }
        publish_all(p, side);
    }
}

// Send the packets of a direction that are due. `until`: those that are due later do not belong to this phase.
static void send_due(struct run *run, const struct stages *t, struct pace *pace, int side, int64_t now, double until)
{
    for (int sent = 0; sent < BURST; sent++) {
        if (pace->due > (double)now || pace->not_before > (double)now || pace->due >= until)
            break;
        bool counted = pace->due >= (double)t->sustain;
        if (counted) {
            note_late(run, (double)now - pace->due);
            run->counts.intended[side]++;
            run->counts.attempted[side]++;
        }
        send_packet(run, side, counted, now);
        went_out(pace, now);
    }
    publish_all(&run->parameters, side);
}

// Run a trial: ramp up, sustain, wait for the last packets.
void run_packets(struct run *run)
{
    const struct parameters *p = &run->parameters;
    const struct counters *counts = &run->counts;
    struct stages t = enter(run);
    // Servers begin when the ramp is half over, to answer each flow when it has come, not a whole pass later. The
    // directions are half an interval apart, so that they do not make a burst of two.
    struct pace paces[2] = {
        pace_of(p, t.start, p->first, BURST),
        pace_of(p, t.start, p->first + (double)(p->ramp / 2) + p->interval / 2, BURST),
    };
    struct pace *last = &paces[p->directions - 1];
    int64_t next_look = t.start, now;
    while (!is_stopped(run)) {
        look(run, &t, &now);
        if (t.stage == RAMP_UP && ramp_up_is_over(&t, now, sooner(paces[CLIENT].due, last->due), p)) {
            double lag = (double)begin_counting(run, &t, now);
            next_look = now;
            paces[CLIENT].due += lag;
            paces[SERVER].due += lag;
        }
        if (t.stage == SUSTAIN) {
            if (t.next_point <= now) {
                run->state.active = most(0, packets_under_way(run));
                note_points(run, &t, least(now, t.end));
            }
            end_early(run, &t, now, run->state.lost, p->linger);
        }
        if (t.stage == SUSTAIN && now >= t.end)
            end_counting(run, &t, now);
        if (p->under_way) {
            write_off(run, now);
            if (now < t.end)
                fill(run, now, t.stage == SUSTAIN);
            int64_t looks = t.stage == SUSTAIN ? looks_due(&next_look, now, p->late_limit) : 0;
            if (looks)
                look_at_own_rings(run, packets_under_way(run), looks);
        }
        double until = (double)(t.stage == RAMP_UP ? t.sustain : t.end);
        for (int side = CLIENT; side < p->directions && now < t.latest; side++)
            send_due(run, &t, &paces[side], side, now, until);
        poll_packets(run, t.away);
        if (t.stage != LINGER)
            continue;
        int64_t missing = counts->attempted[CLIENT] + counts->attempted[SERVER];
        missing -= counts->completed[CLIENT] + counts->completed[SERVER];
        bool sent_all = paces[CLIENT].due >= (double)t.end && last->due >= (double)t.end;
        if ((missing == 0 && sent_all && all_finished(run, &t)) || now >= t.give_up)
            break;
    }
    leave(run, &t);
    for (int side = CLIENT; side < p->directions; side++)
        run->counts.intended[side] += never_sent(run, &t, &paces[side]);
}

// Backlogs, for a DUT that is faster than this generator, of which a closed loop shows nothing. Thousands of frames are
// written to the rings towards the DUT, and all of them are shown to it at once. From its first burst to its last the
// DUT waits for nothing: what comes out finds room on the rings back. Meanwhile the generator works as in a closed
// loop, at its own pace: it takes what came out, and writes the next backlog, not shown yet, where the DUT has taken
// this one. Without that a DUT would be faster than in a closed loop, as no other CPU had what it reads and writes
// (docs/evidence).

// Cycles that a look at the rings may take, some microseconds: an interrupt, or the loss of the CPU, takes longer.
#define LONGEST_LOOK 20000

// A backlog: its frames on the DUT's rings, and those not taken; the frames that were taken at the first look that
// found some taken, and at the last look that found some left; and when these looks were.
struct backlog {
    int64_t frames;
    int64_t left;
    int64_t first;
    int64_t taken;
    int64_t from;
    int64_t until;
};

// Frames of a direction that were written and not shown. `room`: those that may still be written, evenly to all rings.
static int64_t frames_prepared(const struct parameters *p, int side, int64_t *room)
{
    int64_t found = 0;
    *room = INT64_MAX;
    for (int64_t queue = 0; queue < p->queues; queue++) {
        const struct ring *ring = own_ring(p, side, queue);
        int64_t own = (int64_t)(ring->index - ring->published);
        *room = least(*room, p->queues * ((int64_t)ring->mask + 1 - frames_left(ring) - own));
        found += own;
    }
    return found;
}

// Write a burst of the next backlog in each direction. Returns whether there is more to write.
static bool prepare(struct run *run, int64_t now)
{
    const struct parameters *p = &run->parameters;
    bool more = false;
    for (int side = CLIENT; side < p->directions; side++) {
        int64_t room, wanted = p->under_way - frames_prepared(p, side, &room);
        wanted = least(BURST, least(wanted, room));
        int64_t before = run->state.sent, tried = 0;
        while (tried < wanted && run->state.sent - before == tried) { // ends at a flow that the server has not seen
            if (side == SERVER && !p->both_open && waits_for_client(run))
                break;
            send_packet(run, side, false, now);
            tried++;
        }
        more = more || (tried > 0 && tried == wanted);
    }
    return more;
}

// Packets that the DUT has taken and that have not come.
static int64_t packets_in_dut(const struct run *run)
{
    const struct parameters *p = &run->parameters;
    int64_t found = packets_under_way(run) - frames_to_take(p, p->directions), room;
    for (int side = CLIENT; side < p->directions; side++)
        found -= frames_prepared(p, side, &room);
    return found;
}

// Show a backlog to the DUT, until it has taken all of it or stands still. `last`: no other one follows. A DUT moves
// its index when it begins a burst, and the first and the last look see that soon afterwards. So the time between these
// looks is the DUT's time for what it took between them; where this generator was kept from looking, they are only
// closer together. A look that took long is left out, as its moment is not known.
static struct backlog show(struct run *run, const struct stages *t, bool last)
{
    const struct parameters *p = &run->parameters;
    for (int side = CLIENT; side < p->directions; side++)
        publish_all(p, side);
    int64_t now = now_of(t), progress = now;
    struct backlog found = {.frames = frames_to_take(p, p->directions), .from = now, .until = now};
    found.left = found.frames;
    while (found.left > 0 && now < progress + p->silence && !is_stopped(run)) {
        poll_packets(run, t->away);
        if (!last)
            prepare(run, now);
        int64_t before = now_of(t), left = frames_to_take(p, p->directions);
        now = now_of(t);
        if (left == found.left || now - before > LONGEST_LOOK)
            continue;
        progress = now;
        if (left > 0) {
            found.taken = found.frames - left;
            found.until = now;
            if (found.left == found.frames) {
                found.first = found.taken;
                found.from = now;
            }
        }
        found.left = left;
    }
    if (found.left > 0 && found.left == frames_to_take(p, p->directions))
        found.until = now; // it stood still
    return found;
}

// Take what came out, until nothing is missing or what is missing is lost.
static void take_rest(struct run *run, const struct stages *t)
{
    int64_t now = now_of(t), progress = now;
    while (packets_in_dut(run) > 0 && now < progress + run->parameters.lost_after && !is_stopped(run)) {
        int64_t before = run->counts.all_completed;
        poll_packets(run, t->away);
        now = now_of(t);
        if (run->counts.all_completed != before)
            progress = now;
    }
}

// Make the DUT work off one backlog after the other. Only the time in which it works counts. The last backlog is what
// was written by the end, so that nothing stays on the rings.
void run_backlogs(struct run *run)
{
    struct state *s = &run->state;
    struct stages t = enter(run);
    int64_t now = t.start, written = t.start;
    s->worked = s->worked_off = 0;
    while (!is_stopped(run) && t.stage != LINGER) {
        if (t.stage == RAMP_UP && now >= t.sustain)
            begin_counting(run, &t, now);
        if (now >= t.end)
            end_counting(run, &t, now);
        while (t.stage != LINGER && prepare(run, now))
            ;
        s->stretch_before = s->stretch = written; // what is older was written off
        written = now_of(&t);
        struct backlog found = show(run, &t, t.stage == LINGER);
        take_rest(run, &t);
        int64_t lost = packets_in_dut(run);
        run->counts.all_failed += lost;
        if (t.stage == SUSTAIN) {
            s->worked += found.until - found.from;
            s->worked_off += most(0, found.taken - found.first - lost);
        }
        now = now_of(&t);
    }
    leave(run, &t);
}
