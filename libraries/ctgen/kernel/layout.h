// The constants and structs that the kernel and Python share.
//
// Python reads this file (layout.py), so that each fact stands once. It parses only what is used here: a #define of a
// number, and structs of int64_t, uint64_t, uint32_t, uint16_t, uint8_t, double, pointers, structs that stand above,
// and arrays of these, one declaration a line.
//
// Times are in cycles of the processor's time stamp counter. Arrays of two are indexed by the port that sends (or
// takes): CLIENT, then SERVER.
#ifndef LAYOUT_H
#define LAYOUT_H

#include <stdint.h>

#define CLIENT 0
#define SERVER 1

// Bits of the record's number in a tag: at most sixteen million connections. The other bits of the 32 tell trials
// apart.
#define SLOT_BITS 24
// Bits of the flow's number in the tag of a packet.
#define FLOW_BITS 22
// Threads of one trial at most; their number is a power of two. Clients' addresses and ports, flows, records and rings
// towards the DUT are shared out by their number modulo threads: the low bits of a tag are the thread of a frame.
#define MOST_THREADS 8
// Pairs of ports at most, and what each pair adds to the addresses of the one before: 16.0.0.1, 16.1.0.1, and so on.
// Rings of the pairs alternate, and so do flows of packets: the pair is the number of a ring or a flow modulo pairs.
#define MOST_PAIRS 4
#define PAIR_OFFSET 0x00010000
// Words of the bit map of a direction's last packets: twice as many packets as may be under way. A packet that comes
// again is a duplicate that the DUT made, and counts once.
#define REMEMBERED_WORDS 32768
// The end of a list of records.
#define NOBODY 0xFFFFFFFF

// How a connection ends: the client closes, the server closes, the client resets (as profiles say); or never: it is
// held open.
#define BY_CLIENT 0
#define BY_SERVER 1
#define BY_RESET 2
#define NEVER 3

// Why a connection failed.
#define NO_SYN_ACK 0
#define NO_REPLY 1
#define NO_FIN 2
#define NO_LAST_ACK 3
#define RESET 4
#define BAD_CHECKSUM 5
#define CAUSES 6

// States of the client end. FREE: the record is not in use. DEAD: the connection has failed, but its server's reply
// still waits in the queue, and the record is freed after that. AWAITS_FIN: the client has all replies, and the server
// closes first. HELD: the connection is held, and nothing is under way.
#define FREE 0
#define SYN_SENT 1
#define AWAITS_REPLY 2
#define FIN_SENT 3
#define CLIENT_DONE 4
#define DEAD 5
#define AWAITS_FIN 6
#define HELD 7

// Histograms of times, in units of 2^UNIT_SHIFT cycles, whose bins hold any 32-bit number of units: connect times, the
// latency of messages (packets) by the port that sends, and the times from the SYN to the first and the last reply.
#define UNIT_SHIFT 6
#define BINS 1024
#define CONNECT 0
#define MESSAGE 1
#define FIRST_BYTE 3
#define LAST_BYTE 4
#define HISTOGRAMS 5

// One of this many connections has its messages timed, the others their replies; a power of two.
#define TIMED_EVERY 8

// Bytes of a packet's UDP payload before the filler, and the byte of the filler.
#define PACKET_HEADER_BYTES 16
#define FILLER 0x7A
// Payload of requests and of replies: 'x' and 'y', as in the published procedure.
#define REQUEST_FILLER 0x78
#define REPLY_FILLER 0x79

// Additional lengths of the ramp-up that a generator may take which was kept off its CPU.
#define MORE_RAMP_UPS 2
// After a pause the generator catches up at this multiple of its rate at most: more would be a burst of its own making,
// of which the DUT's rings may have to hold a part.
#define CATCH_UP 1.1

// Frames under way to an AF_XDP socket: twice a batch, all of which are sent when the system call returns. Bytes of a
// frame's place in the shared memory: the most that copy mode takes without chains of frames.
#define XDP_ENTRIES 64
#define XDP_CHUNK_BYTES 4096

// A ring of frames in shared memory, the same for both roles and both directions of memif (DPDK's memif.h,
// memif_ring_t):
//
// - one side produces frames and moves an index, the other consumes them and moves another; both are free-running 16-bit
//   counters in shared memory;
// - where the producer owns the buffers (client to server) the consumer's index follows the producer's, and `size` frames
//   fit in between: `bias` is the ring's size;
// - where the consumer owns them (server to client) its index runs ahead of the producer's by the buffers that it has
//   offered: `bias` is 0 for the producer; the consumer adds the size when it gives a buffer back.
//
// A ring to receive from may also be that of a packet socket (packet(7), Documentation/networking/packet_mmap.rst:
// TPACKET_V2): frames of one size, each with a header whose status says whose it is.
struct ring {
    uint16_t *produced;
    uint16_t *consumed;
    struct descriptor *descriptors;
    // The first frame, and the bytes from one frame to the next. The descriptors have these too, but the other side can
    // write there.
    uint8_t *first;
    uint64_t stride;
    uint64_t mask; // of the ring's size
    uint64_t bias;
    // Bytes of a buffer from the frame's beginning, which limit a frame's length; whether this side owns the buffer,
    // and offers it with this length when it gives it back.
    uint32_t buffer_bytes;
    uint32_t offers;
    // Whether it is the ring of a packet socket, whose frames have a header.
    uint64_t is_socket;
    // This side's own index, its value that was shown to the other side, and the frames that may be put before the
    // other side's index must be read again.
    uint64_t index;
    uint64_t published;
    uint64_t room;
    uint64_t padding[4]; // two cache lines, so that rings do not share one
};

// The beginning of a port's frames: Ethernet and IPv6 headers; the sum of both prefixes; and the next hop, an address
// for which neighbour discovery is answered besides those of the profile.
struct template {
    uint8_t macs[12]; // destination and source
    uint8_t ipv6[44]; // with the Ethernet type before it
    uint64_t prefix_sum;
    uint8_t next_hop[16];
};

struct port {
    struct ring *tx; // this thread's first ring to put frames on: see parameters.queues
    struct ring *rx; // to take frames from
    int64_t rx_rings;
    // The thread that polls each ring to take frames from. Null: this thread polls all.
    int64_t *pollers;
    // The first address behind the port, of the first pair (see PAIR_OFFSET), as a number (IPv6: the last 32 bits), and
    // how many there are.
    int64_t address;
    int64_t addresses;
    // For each pair: the next hop of IPv4 (0: none), and the beginning of frames.
    int64_t next_hops[MOST_PAIRS];
    struct template templates[MOST_PAIRS];
};

// A queue of a link thread: the ring to take frames from, and the file descriptor of the socket to send on; for AF_XDP
// also its transmit ring, its completion ring and the memory of the frames, which are null for a packet socket.
struct link_queue {
    struct ring *ring;
    int64_t socket;
    uint32_t *produced;
    uint32_t *consumed;
    struct xdp_desc *descriptors;
    uint32_t *completed;
    uint32_t *reused;
    uint64_t *completions;
    uint8_t *frames;
};

// A link thread: its queues, and its counts since the start: cycles spent on frames, frames, frames that the interface
// refused, and the last error. It ends when `stop` is set.
struct link_thread {
    struct link_queue *queues;
    int64_t queue_count;
    int64_t busy;
    int64_t frames;
    int64_t refused;
    int64_t error;
    int64_t stop;
    int64_t padding[9]; // two cache lines, so that threads do not share one
};

// The payload of a packet: bytes of UDP payload, and the sum of its filler.
struct payload {
    int64_t bytes;
    int64_t sum;
};

// The state that the threads of a trial share: how many have entered a call, and how many have finished it.
struct crew {
    int64_t entered;
    int64_t finished;
    int64_t padding[6];
    // For each thread, on a cache line of its own: certain losses of connections (packets) that count.
    int64_t lost[MOST_THREADS][8];
};

struct parameters {
    struct port ports[2];
    // Number of port pairs, for all of which ports[2] stands.
    int64_t pairs;
    // This thread's rings at each port: their number, and the step from one to the next.
    int64_t queues;
    int64_t stride;
    // The number of this thread, of 2^thread_shift; and the state that it shares with the others, null where it is
    // alone.
    int64_t thread;
    int64_t thread_shift;
    struct crew *crew;
    // The connection records or the flows, and how many of the former there are.
    void *records;
    int64_t record_count;
    // Bytes and checksums of the messages; the bytes of UDP are with the tag, its checksums without.
    int64_t request_bytes;
    int64_t request_sum;
    int64_t reply_bytes;
    int64_t reply_sum;
    int64_t udp_request_bytes;
    int64_t udp_request_sum;
    int64_t udp_reply_bytes;
    int64_t udp_reply_sum;
    // A connection: its messages, those of a short one, short ones in a million, the server's wait, and whether it
    // acknowledges first.
    int64_t messages;
    int64_t short_messages;
    int64_t short_per_million;
    int64_t server_wait;
    int64_t ack_before_reply;
    // Requests over UDP that go out before the first reply.
    int64_t at_once;
    int64_t udp_per_million;
    int64_t ended_by;
    // Whether connections that stay half open are begun next to the load.
    int64_t half_open;
    // Ports of the clients and of the servers.
    int64_t port_min;
    int64_t port_count;
    int64_t tcp_port;
    int64_t udp_port;
    // Client addresses times ports (flows) of this thread, and the parameters of their random order.
    int64_t tuples;
    int64_t tuple_mask;
    int64_t tuple_shift;
    int64_t random_order;
    // High bits of the tag, which tell the frames of an earlier trial apart.
    int64_t salt;
    int64_t ipv6;
    // Time from one connection (packet of a direction) to the next, from the start to the first, and from one half-open
    // connection to the next; infinite: there is none.
    double interval;
    double first;
    double half_open_interval;
    // Lengths of the phases: ramp, full load before counting, sustain phase, and after it at most.
    int64_t ramp;
    int64_t settle;
    int64_t sustain;
    int64_t linger;
    int64_t timeline_step;
    int64_t late_limit;
    // The time within which due frames may go out at once, and how late they may go out (see pace.h).
    int64_t slack;
    int64_t latest;
    // For end_early: certain losses of all threads together beyond which a trial ends, 0: no limit; the earliest end,
    // the time that it has to save, and how long to linger then.
    int64_t most_lost;
    int64_t earliest;
    int64_t least_saved;
    int64_t short_linger;
    // Connections open (packets under way) at once in a closed loop, or frames of a backlog in each direction; 0: an
    // open loop, on a schedule.
    int64_t under_way;
    // A warm start: connections of the steady state (0: a cold start), and the number of server waits in which they are
    // opened. Failures then count by the connection's last progress, not by its beginning.
    int64_t population;
    int64_t opening_waits;
    // How long frames are still taken, and none sent, at the end of a trial that leaves connections open.
    int64_t hush;
    // A tick is 2^tick_shift cycles, about a millisecond; a connection fails after `timeout_ticks` without progress.
    int64_t tick_shift;
    int64_t timeout_ticks;
    // Whether the latency of messages is measured.
    int64_t times_messages;
    // Packets: the VLAN (-1: none), 1 or 2 directions, whether servers open flows of their own, fragments that a packet is
    // sent in (1: it is not fragmented), sizes of the frames in turn.
    int64_t vlan;
    int64_t directions;
    int64_t both_open;
    int64_t fragments;
    struct payload *payloads;
    int64_t payload_count;
    // Packets of a closed loop: the length of a stretch (see state), and how long none may come before all count as
    // lost.
    int64_t lost_after;
    int64_t silence;
    struct link_thread *links;
    int64_t link_count;
};

struct state {
    int64_t stop; // set from outside
    // Records by number: first free one, end of those used, queue of waiting replies, next to sweep.
    int64_t free_head;
    int64_t highest;
    int64_t waiting_first;
    int64_t waiting_last;
    int64_t sweep;
    // Connections open, and begun since the start; the next one's client, server and queue; error feedback for the shares
    // of UDP and of short ones.
    int64_t active;
    int64_t begun;
    int64_t tuple;
    int64_t next_server;
    int64_t next_queue;
    int64_t udp_debt;
    int64_t short_debt;
    // Of held connections: when the phase of questions began, in units.
    int64_t asked_from;
    // Half-open connections begun since the start, and the next one's client.
    int64_t half_begun;
    int64_t half_tuple;
    // The greatest delay, and how many were later than the limit; the longest time between two looks at the clock, so
    // far and in the sustain phase.
    int64_t late_max;
    int64_t late_count;
    int64_t longest_pause;
    int64_t sustain_pause;
    // Cycles of the sustain phase after which it was ended early; 0: it was not.
    int64_t ended_after;
    int64_t active_sum;
    int64_t active_samples;
    int64_t active_max;
    int64_t points; // that were noted
    // Beginning and end of the counting; by how many cycles it began later than planned.
    int64_t counted_from;
    int64_t counted_until;
    int64_t lag;
    // The tick from which failures count, and for how many ticks (see population).
    int64_t failures_from;
    int64_t failures_for;
    // Connections of the population that were opened, or skipped because their time was over.
    int64_t opened;
    // Looks in the sustain phase at the generator's own receive rings, and how often they held most of what was under way.
    int64_t looks;
    int64_t looks_held;
    // When the kernel was left last (0: never entered), and all cycles between leaving and entering it again.
    int64_t left_at;
    int64_t away;
    // What the link threads did in the sustain phase.
    int64_t link_busy;
    int64_t link_frames;
    int64_t link_refused;
    // Whether messages that arrive now are to be timed.
    int64_t timing;
    // Frames on the rings towards the DUT, not taken by it, when the kernel was left last.
    int64_t untaken;
    // The next flow of packets, frame size and sequence number in each direction.
    int64_t flow[2];
    int64_t size[2];
    int64_t sequence[2];
    // Packets that were put on a ring, counted or not; those that count and were lost for certain when they were due.
    int64_t sent;
    int64_t lost;
    // For a closed loop, which writes off lost packets: when the present stretch of time began, and the one before it;
    // the packets sent in the latter that have not come yet; and all that had come when the present one began.
    int64_t stretch;
    int64_t stretch_before;
    int64_t not_come;
    int64_t come_before;
    // Backlogs: the time in which the DUT was seen to work on them, and the frames that it took in this time and did
    // not lose.
    int64_t worked;
    int64_t worked_off;
};

struct counters {
    int64_t tx_packets[2];
    int64_t tx_bytes[2];
    int64_t rx_packets[2];
    int64_t rx_bytes[2];
    int64_t dut_missed;
    int64_t no_record;
    // Counted or not: connections that ended well, and that failed; packets that came out, and that a closed loop wrote
    // off.
    int64_t all_completed;
    int64_t all_failed;
    // Packets of connections that count that met a full ring of the DUT.
    int64_t counted_missed;
    // Connections (packets of a direction) that count: due, begun (written, or lost at the DUT's full ring), ended well
    // (come out).
    int64_t intended[2];
    int64_t attempted[2];
    int64_t completed[2];
    // Connections that count, once established.
    int64_t tcp_established;
    int64_t udp_established;
    // Packets that came out behind one that was sent later on the same way, and the highest sequence number that came out.
    int64_t reordered[2];
    int64_t highest_sequence[8]; // of each direction of each pair
    // TCP connect times, in units: their sum, and the longest since the timeline's last point.
    int64_t setup_sum;
    int64_t setup_max;
    // The longest time of each histogram, in units.
    int64_t longest[HISTOGRAMS];
    // Messages (packets that count) that were timed, by the port that sends; the last latency; and the sum of the
    // differences between successive latencies. In units.
    int64_t timed[2];
    int64_t latency_last[2];
    int64_t jitter_sum[2];
    // Received frames without a use: foreign, of no connection, from or to a wrong address, at the wrong time.
    int64_t foreign;
    int64_t unknown;
    int64_t misdirected;
    int64_t out_of_order;
    // Duplicates: packets that had come before.
    int64_t doubled;
    // Half-open connections: SYNs sent, those that met a full ring of the DUT, that reached the server, and whose answer
    // came back. None of their packets are among those above.
    int64_t half_sent;
    int64_t half_missed;
    int64_t half_passed;
    int64_t half_answered;
    // For each pair of ports, connections (packets) that count: begun, and failed (written and not come out).
    int64_t pair_begun[MOST_PAIRS];
    int64_t pair_lost[MOST_PAIRS];
    // Connections that count and failed (and damaged packets), by cause.
    int64_t failed[CAUSES];
};

// A point of a trial's timeline: all counters so far, and what is open (on its way) now.
struct point {
    struct counters counts;
    int64_t active;
};

// All that the kernel works on for one trial.
struct run {
    struct parameters parameters;
    struct state state;
    struct counters counts;
    // Copies of the counters at the begin and the end of the sustain phase.
    struct counters marks[2];
    int64_t histograms[HISTOGRAMS][BINS];
    // Which of the last packets of a direction have come, by their numbers.
    uint64_t came[2][REMEMBERED_WORDS];
    struct point *points;
    int64_t point_count;
};

// A phase of held connections: its parameters and its results.
struct phase {
    // Whether to ask open connections instead of opening some; how many to open; the time from one to the next; the
    // window of connections that wait at once, and how long one of them may occupy it; how long after the last one
    // answers still count; how many in a row without an answer end the phase, 0: no limit.
    int64_t asks;
    int64_t wanted;
    int64_t interval;
    int64_t window;
    int64_t patience;
    int64_t timeout;
    int64_t give_up;
    // Whether the phase gave up; how many connections were begun, or asked; when the first answer came, and the last,
    // after the beginning (0: none came).
    int64_t gave_up;
    int64_t tried;
    int64_t first;
    int64_t last;
};

// One end of a connection: addresses and ports as they stand in the packets that it sends.
struct end {
    uint32_t address;
    uint32_t peer;
    uint32_t ports;
    uint32_t sequence;
    uint32_t acknowledged;
};

// The record of one connection, a cache line. Each end keeps to its part, but the server reads the client's state to
// tell whether the connection is complete. A server knows its peer from the packets that it takes, so address
// translation in between makes no difference.
struct connection {
    struct end ends[2];
    uint16_t left[2]; // replies that the client, and requests that the server, has yet to take
    uint8_t states[2];
    uint8_t flags;
    uint8_t queue;
    // When the connection began, or when the message under way was sent, in units; the last progress, in ticks. Both
    // wrap around.
    uint32_t started;
    uint32_t progress;
    // The next record in the queue of waiting replies, or in the list of free records; when the reply is due, in units.
    uint32_t next;
    uint32_t reply_due;
};

// A flow of packets as the server has seen it: addresses and ports of the packets that it sends; and whether it has
// seen one.
struct flow {
    uint32_t address;
    uint32_t peer;
    uint32_t ports;
    uint32_t seen;
};

#endif
