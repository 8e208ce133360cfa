// Frames: Ethernet, IP, TCP and UDP headers written to and read from a buffer, with correct checksums.
//
// Addresses and ports are kept as the 32-bit words that stand in the packet, so that comparing and answering needs no byte
// swap. Every TCP segment carries the time stamp option (RFC 7323): its value names the connection's record, and because
// TCP echoes it, each side finds its record without a search. UDP carries the same word at the start of its payload. The
// word is only a hint: addresses and ports are compared with the record before a frame counts.
//
// With IPv6 the clients' addresses differ only in their last 32 bits, and so do the servers'. These bits identify
// connections, flows and frames, as IPv4 addresses do; the port's template has the prefix. An IPv6 header is 20 bytes
// longer than an IPv4 header, so everything behind it, and the last 32 bits of the destination, have their IPv4 offsets
// when counted from 20 bytes later. `ipv6` below is a constant where it matters, so that both are compiled.
#ifndef FRAMES_H
#define FRAMES_H

#include <emmintrin.h>
#include <string.h>

#include "ring.h"

#define IPV6_SHIFT 20

#define FIN 0x01
#define SYN 0x02
#define RST 0x04
#define PSH 0x08
#define ACK 0x10
#define TCP 6
#define UDP 17
#define ICMPV6 58

// Words as they stand in memory on a little-endian machine.
#define ETHERTYPE_IPV4 0x0008
#define ETHERTYPE_IPV6 0xDD86
#define ETHERTYPE_ARP 0x0608
#define ETHERTYPE_VLAN 0x0081
#define NOP_NOP_TIMESTAMP 0x0A080101
#define MSS_1460 0xB4050402
#define TTL_64 0x40
#define DONT_FRAGMENT 0x0040
#define WINDOW_65535 0xFFFF

struct options {
    uint32_t kind; // NOP_NOP_TIMESTAMP
    uint32_t value;
    uint32_t echo;
} __attribute__((packed));

// An Ethernet frame with IPv4. With IPv6: what begins IPV6_SHIFT bytes behind the frame's beginning, valid from the
// ports on.
struct frame {
    uint8_t macs[12];
    uint16_t ethertype;
    uint8_t version;
    uint8_t class;
    uint16_t length;
    uint16_t id;
    uint16_t fragment;
    uint8_t ttl;
    uint8_t protocol;
    uint16_t ip_checksum;
    uint32_t source;
    uint32_t destination;
    uint32_t ports;
    union {
        struct {
            uint32_t sequence;
            uint32_t acknowledged;
            uint8_t offset;
            uint8_t flags;
            uint16_t window;
            uint16_t checksum;
            uint16_t urgent;
            union {
                struct options options;
                struct {
                    uint32_t mss;
                    struct options options;
                } __attribute__((packed)) syn;
            };
        } __attribute__((packed)) tcp;
        struct {
            uint16_t length;
            uint16_t checksum;
            uint8_t payload[];
        } __attribute__((packed)) udp;
    };
} __attribute__((packed, may_alias));

struct ipv6_address {
    uint8_t prefix[12];
    uint32_t end;
} __attribute__((packed));

struct ipv6 {
    uint8_t macs[12];
    uint16_t ethertype;
    uint32_t version; // class and flow as well
    uint16_t length;
    uint8_t next_header;
    uint8_t hop_limit;
    struct ipv6_address source;
    struct ipv6_address destination;
} __attribute__((packed, may_alias));

#define L4 34
_Static_assert(offsetof(struct frame, ports) == L4 && sizeof(struct ipv6) == L4 + IPV6_SHIFT, "see above");

INLINE uint32_t load32(const void *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

INLINE uint64_t load64(const void *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

INLINE uint16_t swap16(uint16_t value)
{
    return __builtin_bswap16(value);
}

INLINE uint32_t swap32(uint32_t value)
{
    return __builtin_bswap32(value);
}

INLINE bool same_prefix(const struct ipv6_address *one, const struct ipv6_address *other)
{
    return memcmp(one->prefix, other->prefix, sizeof one->prefix) == 0;
}

// The 16-bit one's complement sum of a sum of 32-bit words (RFC 1071).
INLINE uint16_t fold(uint64_t total)
{
    total = (total & 0xFFFFFFFF) + (total >> 32);
    total = (total & 0xFFFF) + (total >> 16);
    total = (total & 0xFFFF) + (total >> 16);
    return (uint16_t)((total & 0xFFFF) + (total >> 16));
}

// Longer payloads are summed in larger pieces.
#define LONG_PAYLOAD 128

// As words_sum, for a multiple of 32 bytes.
static __attribute__((noinline, unused)) uint64_t long_sum(const uint8_t *at, uint32_t length)
{
    const __m128i zero = _mm_setzero_si128();
    __m128i sums[4] = {zero, zero, zero, zero};
    for (const uint8_t *end = at + length; at < end; at += 32) {
        __m128i one = _mm_loadu_si128((const __m128i *)at), other = _mm_loadu_si128((const __m128i *)(at + 16));
        sums[0] = _mm_add_epi64(sums[0], _mm_unpacklo_epi32(one, zero));
        sums[1] = _mm_add_epi64(sums[1], _mm_unpackhi_epi32(one, zero));
        sums[2] = _mm_add_epi64(sums[2], _mm_unpacklo_epi32(other, zero));
        sums[3] = _mm_add_epi64(sums[3], _mm_unpackhi_epi32(other, zero));
    }
    uint64_t halves[2];
    __m128i all = _mm_add_epi64(_mm_add_epi64(sums[0], sums[1]), _mm_add_epi64(sums[2], sums[3]));
    memcpy(halves, &all, sizeof halves);
    return halves[0] + halves[1];
}

// The sum of the 32-bit words of `length` bytes; a rest of one to three bytes is padded with zeros. It has two halves,
// as the processor adds both at once.
INLINE uint64_t words_sum(const uint8_t *at, uint32_t length)
{
    uint64_t low = 0, high = 0;
    if (__builtin_expect(length >= LONG_PAYLOAD, 0)) {
        uint32_t whole = length & ~31u;
        high = long_sum(at, whole);
        at += whole;
        length -= whole;
    }
    for (; length >= 8; length -= 8, at += 8) {
        uint64_t pair = load64(at);
        low += pair & 0xFFFFFFFF;
        high += pair >> 32;
    }
    if (length & 4) {
        low += load32(at);
        at += 4;
    }
    if (length & 2)
        high += (uint32_t)(at[0] | at[1] << 8);
    if (length & 1)
        high += (uint32_t)at[length & 2] << (length & 2 ? 16 : 0);
    return low + high;
}

INLINE uint32_t swap_ports(uint32_t ports)
{
    return ports << 16 | ports >> 16;
}

// Fill `length` bytes, rounded up to eight, with a byte; the buffer is long enough.
INLINE void write_filler(uint8_t *at, uint32_t length, uint8_t filler)
{
    uint64_t eight = filler * 0x0101010101010101;
    uint32_t done = 0;
    // No memset: the call alone costs a small packet a quarter of its time.
    for (; done + 32 <= length; done += 32) {
        _mm_storeu_si128((__m128i *)(at + done), _mm_set1_epi64x((int64_t)eight));
        _mm_storeu_si128((__m128i *)(at + done + 16), _mm_set1_epi64x((int64_t)eight));
    }
    for (; done < length; done += 8)
        memcpy(at + done, &eight, sizeof eight);
}

// Source, destination and ports of a packet.
struct route {
    uint32_t source;
    uint32_t destination;
    uint32_t ports;
};

// Write Ethernet and IP headers before `length` bytes. Returns the sum of the pseudo-header, for the checksum.
INLINE uint64_t write_ip(
    uint8_t *at, bool ipv6, const struct template *template, const struct route *route, uint16_t length, uint8_t protocol)
{
    uint16_t swapped = swap16(length);
    uint64_t pseudo_header = (uint64_t)route->source + route->destination + ((uint32_t)protocol << 8) + swapped;
    if (ipv6) {
        struct ipv6 *header = (struct ipv6 *)at;
        memcpy(header, template, sizeof *header);
        header->length = swapped;
        header->next_header = protocol;
        header->source.end = route->source;
        header->destination.end = route->destination;
        return pseudo_header + template->prefix_sum;
    }
    struct frame *frame = (struct frame *)at;
    uint32_t first = 0x45 | (uint32_t)swap16((uint16_t)(20 + length)) << 16;
    uint32_t second = DONT_FRAGMENT << 16;
    uint32_t third = TTL_64 | (uint32_t)protocol << 8;
    uint64_t total = (uint64_t)first + second + third + route->source + route->destination;
    uint32_t words[5] = {first, second, third | (uint32_t)(uint16_t)~fold(total) << 16, route->source, route->destination};
    memcpy(frame->macs, template->macs, sizeof frame->macs);
    frame->ethertype = ETHERTYPE_IPV4;
    memcpy(&frame->version, words, sizeof words);
    return pseudo_header;
}

// The fields of a TCP segment: numbers, but the time stamp as it stands in the packet.
struct segment {
    uint32_t sequence;
    uint32_t acknowledged;
    uint8_t flags;
    uint32_t value;
    uint32_t echo;
    uint16_t payload;
    uint8_t filler;
    uint64_t payload_sum;
};

// Write a TCP segment; a SYN also carries a maximum segment size. Returns the frame's length.
INLINE uint32_t write_tcp(
    uint8_t *at, bool ipv6, const struct template *template, const struct route *route, const struct segment *segment)
{
    bool syn = segment->flags & SYN;
    uint16_t header = syn ? 36 : 32;
    uint64_t total = write_ip(at, ipv6, template, route, header + segment->payload, TCP);
    at += ipv6 ? IPV6_SHIFT : 0;
    struct frame *frame = (struct frame *)at;
    uint32_t sequence = swap32(segment->sequence), acknowledged = swap32(segment->acknowledged);
    uint32_t offset_flags = (uint32_t)header << 2 | (uint32_t)segment->flags << 8 | (uint32_t)WINDOW_65535 << 16;
    frame->ports = route->ports;
    frame->tcp.sequence = sequence;
    frame->tcp.acknowledged = acknowledged;
    memcpy(&frame->tcp.offset, &offset_flags, sizeof offset_flags);
    total += (uint64_t)route->ports + sequence + acknowledged + offset_flags;
    total += (uint64_t)NOP_NOP_TIMESTAMP + segment->value + segment->echo + segment->payload_sum;
    struct options options = {NOP_NOP_TIMESTAMP, segment->value, segment->echo};
    if (syn) {
        frame->tcp.syn.mss = MSS_1460;
        frame->tcp.syn.options = options;
        total += MSS_1460;
    } else {
        frame->tcp.options = options;
    }
    frame->tcp.checksum = ~fold(total);
    frame->tcp.urgent = 0;
    write_filler(at + L4 + header, segment->payload, segment->filler);
    return (ipv6 ? IPV6_SHIFT : 0) + L4 + header + segment->payload;
}

// Write the headers of a UDP datagram of `payload` bytes with a known sum. Returns the place of the payload.
INLINE uint8_t *write_udp(
    uint8_t *at, bool ipv6, const struct template *template, const struct route *route, uint16_t payload,
    uint64_t payload_sum)
{
    uint16_t length = swap16(8 + payload);
    uint64_t total = write_ip(at, ipv6, template, route, 8 + payload, UDP) + length + route->ports + payload_sum;
    struct frame *frame = (struct frame *)(at + (ipv6 ? IPV6_SHIFT : 0));
    uint16_t checksum = ~fold(total);
    frame->ports = route->ports;
    frame->udp.length = length;
    frame->udp.checksum = checksum ? checksum : 0xFFFF; // 0 means "no checksum" (RFC 768)
    return frame->udp.payload;
}

enum kind { IS_TCP, IS_UDP, IS_OTHER, IS_BROKEN };

// A received frame: its kind, the bytes behind the IP header, and its route. Of an IS_OTHER frame only the kind is
// valid.
struct received {
    enum kind kind;
    uint32_t bytes; // behind the IP header
    const struct frame *frame; // with IPv6: see struct frame
    struct route route;
};

// As `classify`, for a frame of IPv6 without extension headers, from the other end's prefix to the prefix of the port
// with this template.
INLINE void classify_ipv6(
    struct received *received, const uint8_t *at, uint32_t length, const struct template *template)
{
    const struct ipv6 *header = (const struct ipv6 *)at, *own = (const struct ipv6 *)template;
    uint32_t bytes = swap16(header->length);
    uint8_t protocol = header->next_header;
    if (length < sizeof *header + 8 || header->ethertype != ETHERTYPE_IPV6 || (header->version & 0xF0) != 0x60)
        return;
    if (bytes + sizeof *header > length || bytes < 8 || (protocol != TCP && protocol != UDP))
        return;
    if (!same_prefix(&header->source, &own->destination) || !same_prefix(&header->destination, &own->source))
        return;
    received->bytes = bytes;
    received->route = (struct route){header->source.end, header->destination.end, received->frame->ports};
    uint64_t total = template->prefix_sum + header->source.end + header->destination.end;
    total += ((uint32_t)protocol << 8) + swap16((uint16_t)bytes) + words_sum(at + sizeof *header, bytes);
    bool broken = fold(total) != 0xFFFF || (protocol == UDP && received->frame->udp.checksum == 0);
    received->kind = broken ? IS_BROKEN : protocol == TCP ? IS_TCP : IS_UDP;
}

// Classify a received frame: TCP or UDP with correct checksums, over IPv6, or over IPv4 without options or fragments;
// or not.
INLINE struct received classify(const uint8_t *at, uint32_t length, bool ipv6, const struct template *template)
{
    const struct frame *frame = (const struct frame *)(at + (ipv6 ? IPV6_SHIFT : 0));
    struct received received = {IS_OTHER, 0, frame, {0, 0, 0}};
    if (ipv6) {
        classify_ipv6(&received, at, length, template);
        return received;
    }
    uint32_t words[5], total_length = swap16(frame->length);
    uint8_t protocol = frame->protocol;
    if (length < L4 + 8 || frame->ethertype != ETHERTYPE_IPV4 || frame->version != 0x45)
        return received;
    if (total_length + 14 > length || total_length < 28 || frame->fragment & 0xFF3F)
        return received;
    if (protocol != TCP && protocol != UDP)
        return received;
    memcpy(words, &frame->version, sizeof words);
    uint64_t addresses = (uint64_t)words[3] + words[4];
    uint32_t bytes = total_length - 20;
    received.bytes = bytes;
    received.route = (struct route){words[3], words[4], frame->ports};
    bool broken = fold(addresses + words[0] + words[1] + words[2]) != 0xFFFF;
    // The generator always sends a UDP checksum: where there is none, it was removed on the way.
    broken |= protocol == UDP && frame->udp.checksum == 0;
    uint64_t total = addresses + ((uint32_t)protocol << 8) + swap16((uint16_t)bytes) + words_sum(at + L4, bytes);
    broken |= fold(total) != 0xFFFF;
    received.kind = broken ? IS_BROKEN : protocol == TCP ? IS_TCP : IS_UDP;
    return received;
}

// Fields of an IPv4 header as numbers: the flag that more fragments follow, and the place of a fragment in its
// datagram, in pieces of eight bytes.
#define MORE_FRAGMENTS 0x2000
#define FRAGMENT_OFFSET 0x1FFF

INLINE uint16_t ipv4_header_sum(const struct frame *frame)
{
    uint32_t words[5];
    memcpy(words, &frame->version, sizeof words);
    return fold((uint64_t)words[0] + words[1] + words[2] + words[3] + words[4]);
}

// Turn the frame of a UDP datagram into a fragment of a longer datagram. All fragments have the same bytes behind the
// IP header, the UDP header included, so that each shows ports and tag. A checksum would cover all fragments: there is
// none (RFC 768).
INLINE void make_fragment(struct frame *frame, uint16_t id, uint32_t number, uint32_t fragments)
{
    uint32_t bytes = swap16(frame->length) - 20u, offset = number * bytes / 8;
    frame->id = swap16(id);
    frame->fragment = swap16((uint16_t)(offset | (number + 1 < fragments ? MORE_FRAGMENTS : 0)));
    frame->ip_checksum = 0;
    frame->ip_checksum = ~ipv4_header_sum(frame);
    frame->udp.length = swap16((uint16_t)(fragments * bytes));
    frame->udp.checksum = 0;
}

// As `classify`, for a frame of `make_fragment`: IS_UDP is the last fragment of a datagram. A DUT that tracks
// connections passes no fragment before all have come.
INLINE struct received classify_fragment(const uint8_t *at, uint32_t length, uint32_t fragments)
{
    const struct frame *frame = (const struct frame *)at;
    struct received received = {IS_OTHER, 0, frame, {0, 0, 0}};
    uint32_t total_length = swap16(frame->length), fragment = swap16(frame->fragment);
    if (length < L4 + 8 || frame->ethertype != ETHERTYPE_IPV4 || frame->version != 0x45 || frame->protocol != UDP)
        return received;
    if (total_length + 14 > length || total_length < 28 || fragment & MORE_FRAGMENTS)
        return received;
    received.bytes = total_length - 20;
    if ((fragment & FRAGMENT_OFFSET) * 8 != (fragments - 1) * received.bytes)
        return received;
    received.route = (struct route){frame->source, frame->destination, frame->ports};
    received.kind = ipv4_header_sum(frame) == 0xFFFF ? IS_UDP : IS_BROKEN;
    return received;
}

// The tag of a frame, whatever else the frame holds. `echoed`: the peer's echo of it (client side). Reads at most the
// first 70 bytes (with IPv6 20 more), which every buffer has.
INLINE uint32_t tag_of(const struct frame *frame, bool is_udp, bool echoed)
{
    if (is_udp)
        return load32(frame->udp.payload);
    const struct options *options = frame->tcp.flags & SYN ? &frame->tcp.syn.options : &frame->tcp.options;
    return echoed ? options->echo : options->value;
}

// Bytes of payload of a TCP segment; negative where its header is longer than the segment.
INLINE int32_t tcp_payload_bytes(const struct received *received)
{
    return (int32_t)received->bytes - ((received->frame->tcp.offset >> 4) << 2);
}

#endif
