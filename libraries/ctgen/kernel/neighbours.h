// Each port answers for the addresses behind it, so that a DUT resolves them by itself: ARP (RFC 826), and neighbour
// discovery with IPv6 (RFC 4861).
#ifndef NEIGHBOURS_H
#define NEIGHBOURS_H

#include "frames.h"

struct arp {
    uint8_t destination[6];
    uint8_t source[6];
    uint16_t ethertype;
    uint16_t types[3]; // hardware and protocol, and their lengths
    uint16_t operation;
    uint8_t sender_mac[6];
    uint32_t sender;
    uint8_t target_mac[6];
    uint32_t target;
    uint8_t padding[18]; // to Ethernet's least, without FCS
} __attribute__((packed, may_alias));

#define ARP_BYTES 42
#define ARP_REQUEST 0x0100 // as they stand in memory on a little-endian machine
#define ARP_REPLY 0x0200

// A neighbour solicitation or advertisement with the link-layer address as its option.
struct neighbour {
    struct ipv6 ip;
    uint8_t kind;
    uint8_t code;
    uint16_t checksum;
    uint32_t flags;
    struct ipv6_address target;
    uint8_t option;
    uint8_t units; // of 8 bytes
    uint8_t mac[6];
} __attribute__((packed, may_alias));

#define SOLICITATION 135
#define ADVERTISEMENT 136
#define SOLICITED_OVERRIDE 0x60 // first byte of the flags
#define TARGET_LINK_LAYER_ADDRESS 2

_Static_assert(sizeof(struct arp) == 60 && sizeof(struct neighbour) == 86, "as on the wire");

INLINE bool is_behind(const struct port *port, int64_t pair, uint32_t address)
{
    int64_t number = swap32(address) - pair * PAIR_OFFSET;
    return port->address <= number && number < port->address + port->addresses;
}

// Answer an ARP request for an address behind a port of a pair, or for its next hop. False where the frame is none.
static inline bool answer_arp(
    const struct port *port, int64_t pair, struct ring *tx, const uint8_t *at, uint32_t length)
{
    const struct arp *asked = (const struct arp *)at;
    if (length < ARP_BYTES || asked->ethertype != ETHERTYPE_ARP)
        return false;
    int64_t next_hop = port->next_hops[pair];
    bool wanted = is_behind(port, pair, asked->target) || (next_hop && swap32(asked->target) == next_hop);
    if (asked->operation != ARP_REQUEST || !wanted || !tx || !has_room(tx))
        return false;
    struct arp reply = {.ethertype = ETHERTYPE_ARP, .types = {0x0100, 0x0008, 0x0406}, .operation = ARP_REPLY};
    const uint8_t *own = port->templates[pair].macs + 6;
    memcpy(reply.destination, asked->sender_mac, 6);
    memcpy(reply.source, own, 6);
    memcpy(reply.sender_mac, own, 6);
    reply.sender = asked->target;
    memcpy(reply.target_mac, asked->sender_mac, 6);
    reply.target = asked->sender;
    memcpy(next_buffer(tx), &reply, sizeof reply);
    put(tx, sizeof reply);
    return true;
}

// Answer a solicitation of an address behind a port of a pair, or of its next hop. False where the frame is none.
static inline bool answer_solicitation(
    const struct port *port, int64_t pair, struct ring *tx, const uint8_t *at, uint32_t length)
{
    static const uint8_t nobody[16];
    const struct neighbour *asked = (const struct neighbour *)at;
    const struct template *template = &port->templates[pair];
    const struct ipv6 *own = (const struct ipv6 *)template;
    if (length < offsetof(struct neighbour, option) || asked->ip.ethertype != ETHERTYPE_IPV6)
        return false;
    if (asked->ip.next_header != ICMPV6 || asked->kind != SOLICITATION)
        return false;
    bool wanted = same_prefix(&asked->target, &own->source) && is_behind(port, pair, asked->target.end);
    wanted |= memcmp(&asked->target, template->next_hop, sizeof asked->target) == 0;
    bool looks_for_duplicates = memcmp(&asked->ip.source, nobody, sizeof nobody) == 0;
    if (!wanted || looks_for_duplicates || !tx || !has_room(tx))
        return false;
    struct neighbour reply = {.kind = ADVERTISEMENT, .flags = SOLICITED_OVERRIDE};
    const uint16_t bytes = sizeof reply - sizeof reply.ip;
    memcpy(reply.ip.macs, asked->ip.macs + 6, 6);
    memcpy(reply.ip.macs + 6, template->macs + 6, 6);
    reply.ip.ethertype = ETHERTYPE_IPV6;
    reply.ip.version = 0x60;
    reply.ip.length = swap16(bytes);
    reply.ip.next_header = ICMPV6;
    reply.ip.hop_limit = 255;
    reply.ip.source = reply.target = asked->target;
    reply.ip.destination = asked->ip.source;
    reply.option = TARGET_LINK_LAYER_ADDRESS;
    reply.units = 1;
    memcpy(reply.mac, template->macs + 6, 6);
    const uint8_t *written = (const uint8_t *)&reply;
    uint64_t total = words_sum(written + offsetof(struct ipv6, source), sizeof reply.ip - offsetof(struct ipv6, source));
    total += words_sum(written + sizeof reply.ip, bytes) + swap16(bytes) + (ICMPV6 << 8);
    reply.checksum = ~fold(total);
    memcpy(next_buffer(tx), &reply, sizeof reply);
    put(tx, sizeof reply);
    return true;
}

// Answer a frame of no connection or stream, which a port took on a ring, where it asks for an address behind the port.
// Count the answer, or any other frame as foreign: neither end sent it. Returns the ring that has the answer; null: there
// is none.
static inline struct ring *answer(struct run *run, int side, int64_t came_on, const uint8_t *at, uint32_t length)
{
    const struct parameters *p = &run->parameters;
    const struct port *port = &p->ports[side];
    int64_t pair = pair_at(p, came_on), queue = queue_to_answer(p, came_on);
    struct ring *tx = queue < 0 ? NULL : own_ring(p, side, queue);
    bool ipv6 = p->ipv6;
    if (!(ipv6 ? answer_solicitation(port, pair, tx, at, length) : answer_arp(port, pair, tx, at, length))) {
        run->counts.foreign++;
        return NULL;
    }
    run->counts.tx_packets[side]++;
    run->counts.tx_bytes[side] += ipv6 ? sizeof(struct neighbour) : sizeof(struct arp);
    return tx;
}

#endif
