/* Frames of UDP and TCP over IPv4, with complete checksums. */

enum { SYN = 2, ACK = 16, FIN = 1 };
enum { TCP = 6, UDP = 17 };

static int vlan;

static void put16(u8 *at, u32 value) { at[0] = value >> 8; at[1] = value; }
static void put32(u8 *at, u32 value) { put16(at, value >> 16); put16(at + 2, value); }
static u32 get16(const u8 *at) { return at[0] << 8 | at[1]; }
static u32 get32(const u8 *at) { return get16(at) << 16 | get16(at + 2); }

static u32 sum(const u8 *at, int length, u32 total)
{
    for (; length > 1; length -= 2, at += 2) total += get16(at);
    return length ? total + (*at << 8) : total;
}

static u32 folded(u32 total)
{
    while (total >> 16) total = (total & 0xffff) + (total >> 16);
    return ~total & 0xffff;
}

/* Write a frame of UDP or TCP with complete checksums; returns its length: 60 bytes, or 64 with a tag. */
static int write_frame(u8 *frame, struct end *end, int protocol, u32 from, u32 to, u32 from_port, u32 to_port,
                       u32 flags, u32 seq, u32 ack)
{
    u8 *at = frame, *ip, *head;
    int payload = protocol == TCP ? 20 : 26, i;

    for (i = 0; i < FRAME; i++) frame[i] = 0;
    copy(at, end->to, 6);
    copy(at + 6, end->from, 6);
    at += 12;
    if (vlan) { put16(at, 0x8100); put16(at + 2, vlan); at += 4; }
    put16(at, ETH_P_IP);
    ip = at + 2;
    head = ip + 20;
    ip[0] = 0x45;
    put16(ip + 2, 20 + payload);
    put16(ip + 6, 0x4000);
    ip[8] = 64;
    ip[9] = protocol;
    put32(ip + 12, from);
    put32(ip + 16, to);
    put16(ip + 10, folded(sum(ip, 20, 0)));
    put16(head, from_port);
    put16(head + 2, to_port);
    if (protocol == TCP) {
        put32(head + 4, seq);
        put32(head + 8, ack);
        head[12] = 0x50;
        head[13] = flags;
        put16(head + 14, 65535);
    } else {
        put16(head + 4, payload);
    }
    put16(head + (protocol == TCP ? 16 : 6), folded(sum(head, payload, sum(ip + 12, 8, protocol + payload))));
    return 60 + (vlan ? 4 : 0);
}
