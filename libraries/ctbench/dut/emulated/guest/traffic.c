/* Sends packets through a device under test, counts what comes out, and reads what that cost: the emulated machine's
 * time-stamp counter ticks once an instruction.
 *
 * It stands between two network namespaces, `client` and `server` (ip-netns(8)), each of which has one end of a wire
 * to the device under test, the interface `wire`. Frames go in and come out there through packet sockets (packet(7)).
 * Everything is in lock-step: a batch goes in, and the kernel has forwarded all of it when the system call returns,
 * because the machine has one CPU.
 *
 *   traffic stream FLOWS PACKETS ROUNDS  MAC MAC VLAN   UDP packets of FLOWS flows, client to server
 *   traffic udp    CONNECTIONS   ROUNDS  MAC MAC VLAN   new UDP connections: a request and a reply
 *   traffic tcp    CONNECTIONS   ROUNDS  MAC MAC VLAN   new TCP connections: opened and closed without data
 *
 * The MAC addresses are those that the client's and the server's frames go to. VLAN 0 sends frames without a tag.
 * It prints `round NAME SENT RECEIVED INSTRUCTIONS` for each round, counted in packets (stream) or connections, and
 * ends with status 1 and a sentence where it cannot go on.
 *
 * No library: it is compiled by whatever C compiler there is, and starts in a machine that has none. Linux on x86-64.
 */

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;

enum { BATCH = 32, FRAME = 68, MOST = 16384, BUFFER = 2048, MOST_ROUNDS = 64, PATIENCE = 2000 };
enum { SYN = 2, ACK = 16, FIN = 1 };
enum { TCP = 6, UDP = 17 };
/* Flows of streams come before it, new connections from it on. */
enum { FIRST_NEW = 1 << 20 };

/* --- the kernel --------------------------------------------------------------------------------------------------- */

long kernel(long call, long a, long b, long c, long d, long e, long f);
u64 instructions(void);
/* The arguments of a function are one register off from those of a system call (x86-64 ABI, appendix A.2.1). */
__asm__(".globl kernel\n"
        "kernel:\n"
        "mov %rdi, %rax\n mov %rsi, %rdi\n mov %rdx, %rsi\n mov %rcx, %rdx\n"
        "mov %r8, %r10\n mov %r9, %r8\n mov 8(%rsp), %r9\n"
        "syscall\n ret\n"
        ".globl instructions\n"
        "instructions:\n"
        "rdtsc\n shl $32, %rdx\n or %rdx, %rax\n ret\n"
        ".globl _start\n"
        "_start:\n"
        "mov %rsp, %rdi\n and $-16, %rsp\n call begin\n");

enum { READ_AT = 17, WRITE = 1, OPEN = 2, CLOSE = 3, NANOSLEEP = 35, SOCKET = 41, BIND = 49, EXIT = 60, IOCTL = 16,
       SETNS = 308, SENDMMSG = 307, RECVMMSG = 299 };
enum { AF_PACKET = 17, SOCK_RAW = 3, ETH_P_IP = 0x0800, SIOCGIFINDEX = 0x8933, DONT_WAIT = 0x40,
       NEW_NETWORK = 0x40000000 };

struct vector { void *base; u64 length; };
struct message { void *name; u64 name_length; struct vector *vectors; u64 count; void *control; u64 control_length;
                 u64 flags; u32 length; u32 padding; };
struct address { u16 family, protocol; int interface; u16 hardware; u8 type, length; u8 mac[8]; };

static u64 text_length(const char *text) { u64 n = 0; while (text[n]) n++; return n; }

static void say(const char *text) { kernel(WRITE, 1, (long)text, text_length(text), 0, 0, 0); }

static void say_number(u64 number)
{
    char digits[24];
    int at = 23;

    digits[at] = 0;
    do digits[--at] = '0' + number % 10; while (number /= 10);
    say(digits + at);
}

static void fail(const char *what, long status)
{
    say("traffic: "); say(what); say(": error "); say_number(status < 0 ? -status : status); say("\n");
    kernel(EXIT, 1, 0, 0, 0, 0, 0);
}

/* --- an end of the wire -------------------------------------------------------------------------------------------- */

struct end {
    int sends, listens;     /* sockets */
    int counters;           /* /proc/net/dev of its namespace */
    int interface;
    u8 to[6], from[6];      /* MAC addresses of what it sends */
    u8 in[BATCH][BUFFER];   /* what was received last */
};

static struct end client, server;

/* Compilers call it by this name. */
void *memset(void *to, int value, u64 length)
{
    u8 *at = to;

    while (length--) *at++ = value;
    return to;
}

static void copy(u8 *to, const u8 *from, u64 length) { while (length--) *to++ = *from++; }

static int open_file(const char *path)
{
    long file = kernel(OPEN, (long)path, 0, 0, 0, 0, 0);

    if (file < 0) fail(path, file);
    return file;
}

static int packet_socket(struct end *end, int protocol)
{
    struct address address = {AF_PACKET, 0, 0, 0, 0, 0, {0}};
    long made = kernel(SOCKET, AF_PACKET, SOCK_RAW, 0, 0, 0, 0), status;

    if (made < 0) fail("a packet socket", made);
    address.protocol = (protocol >> 8 | protocol << 8) & 0xffff;
    address.interface = end->interface;
    if ((status = kernel(BIND, made, (long)&address, 20, 0, 0, 0))) fail("a packet socket's interface", status);
    return made;
}

/* Open an end in its namespace. */
static void open_end(struct end *end, const char *namespace, const u8 *to, const u8 *from)
{
    struct { char name[16]; int index; char rest[20]; } request = {"wire", 0, ""};
    long status = kernel(SETNS, open_file(namespace), NEW_NETWORK, 0, 0, 0, 0);
    int any;

    if (status) fail(namespace, status);
    any = kernel(SOCKET, AF_PACKET, SOCK_RAW, 0, 0, 0, 0);
    if ((status = kernel(IOCTL, any, SIOCGIFINDEX, (long)&request, 0, 0, 0))) fail("the interface wire", status);
    end->interface = request.index;
    end->counters = open_file("/proc/thread-self/net/dev");
    end->sends = packet_socket(end, 0);
    end->listens = packet_socket(end, ETH_P_IP);
    copy(end->to, to, 6);
    copy(end->from, from, 6);
}

/* Packets that the interface has received: of /proc/net/dev the second number behind its name. */
static u64 received(struct end *end)
{
    static char text[4096];
    long length = kernel(READ_AT, end->counters, (long)text, sizeof text - 1, 0, 0, 0);
    char *at = text;
    u64 number = 0;

    if (length < 0) fail("/proc/net/dev", length);
    for (text[length] = 0; *at; at++) {
        if (at[0] == 'w' && at[1] == 'i' && at[2] == 'r' && at[3] == 'e' && at[4] == ':') {
            for (at += 5; *at == ' '; at++) ;
            for (; *at != ' '; at++) ;
            for (; *at == ' '; at++) ;
            for (; *at >= '0' && *at <= '9'; at++) number = number * 10 + (*at - '0');
            return number;
        }
    }
    fail("no interface wire in /proc/net/dev", 0);
    return 0;
}

static void transmit(struct end *end, u8 (*frames)[FRAME], const u16 *lengths, u32 count)
{
    static struct message messages[BATCH];
    static struct vector vectors[BATCH];
    u32 i;
    long status;

    for (i = 0; i < count; i++) {
        vectors[i].base = frames[i];
        vectors[i].length = lengths[i];
        messages[i].vectors = &vectors[i];
        messages[i].count = 1;
    }
    if ((status = kernel(SENDMMSG, end->sends, (long)messages, count, 0, 0, 0)) != (long)count)
        fail("sending", status);
}

/* How often to look again, a millisecond later, for what has not arrived: a first packet may be decided on by a
 * program. Never while instructions are counted, because time that is slept counts as well. */
static u32 patience;

/* Take what arrives; returns how many frames that were. */
static u32 receive(struct end *end, u32 count)
{
    static struct message messages[BATCH];
    static struct vector vectors[BATCH];
    static long millisecond[2] = {0, 1000000};
    u32 i, came = 0, left = patience;
    long status;

    for (i = 0; i < count; i++) {
        vectors[i].base = end->in[i];
        vectors[i].length = BUFFER;
        messages[i].vectors = &vectors[i];
        messages[i].count = 1;
    }
    for (;;) {
        status = kernel(RECVMMSG, end->listens, (long)(messages + came), count - came, DONT_WAIT, 0, 0);
        came += status < 0 ? 0 : status;
        if (came == count || !left--) return came;
        kernel(NANOSLEEP, (long)millisecond, 0, 0, 0, 0, 0);
    }
}

/* --- frames --------------------------------------------------------------------------------------------------------- */

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

/* --- flows ---------------------------------------------------------------------------------------------------------- */

/* Client addresses 16.0.0.0 to 16.0.0.255 with ports from 1024 on, to servers 48.0.0.0 to 48.0.0.255. */
static u32 client_of(u32 flow) { return 0x10000000 + flow % 256; }
static u32 server_of(u32 flow) { return 0x30000000 + flow % 256; }
static u32 port_of(u32 flow) { return 1024 + flow / 256; }
static u32 service(int protocol) { return protocol == TCP ? 8080 : 5353; }

static u8 out[MOST][FRAME];
static u16 lengths[MOST];

/* The frames of a step that clients send, from the first flow on. */
static void ask(u32 at, u32 flow, u32 count, int protocol, u32 flags, u32 seq, u32 ack)
{
    u32 i;

    for (i = 0; i < count; i++)
        lengths[at + i] = write_frame(out[at + i], &client, protocol, client_of(flow + i), server_of(flow + i),
                                      port_of(flow + i), service(protocol), flags, seq, ack);
}

/* The answers to what the server received: to whom it came from, which may have been translated. */
static u32 answer(u32 count, int protocol, u32 flags, u32 seq, u32 ack)
{
    u32 i;

    for (i = 0; i < count; i++) {
        u8 *ip = server.in[i] + 14;
        if (ip[9] != protocol) return 0;
        lengths[i] = write_frame(out[i], &server, protocol, get32(ip + 16), get32(ip + 12), get16(ip + 22),
                                 get16(ip + 20), flags, seq, ack);
    }
    return count;
}

/* How many of the answers came back to the client that asked, from the server that it asked. */
static u32 answered(u32 flow, u32 count, int protocol)
{
    u32 i, good = 0;

    for (i = 0; i < count; i++) {
        u8 *ip = client.in[i] + 14;
        good += ip[9] == protocol && get32(ip + 12) == server_of(flow + i) && get32(ip + 16) == client_of(flow + i)
                && get16(ip + 20) == service(protocol) && get16(ip + 22) == port_of(flow + i);
    }
    return good;
}

static u32 to_server(u32 count) { transmit(&client, out, lengths, count); return receive(&server, count); }
static u32 to_client(u32 count) { transmit(&server, out, lengths, count); return receive(&client, count); }

/* Each opens connections from a flow on and returns how many of them were served. */
static u32 udp_connections(u32 flow, u32 count)
{
    ask(0, flow, count, UDP, 0, 0, 0);
    if (answer(to_server(count), UDP, 0, 0, 0) != count || to_client(count) != count) return 0;
    return answered(flow, count, UDP);
}

static u32 tcp_connections(u32 flow, u32 count)
{
    u32 good;

    ask(0, flow, count, TCP, SYN, 1000, 0);
    if (answer(to_server(count), TCP, SYN | ACK, 5000, 1001) != count || to_client(count) != count) return 0;
    good = answered(flow, count, TCP);
    ask(0, flow, count, TCP, ACK, 1001, 5001);
    if (to_server(count) != count) return 0;
    ask(0, flow, count, TCP, FIN | ACK, 1001, 5001);
    if (answer(to_server(count), TCP, FIN | ACK, 5001, 1002) != count || to_client(count) != count) return 0;
    ask(0, flow, count, TCP, ACK, 1002, 5002);
    return to_server(count) == count ? good : 0;
}

/* --- what is measured ----------------------------------------------------------------------------------------------- */

/* Said when all rounds are over: the serial line sends what is said in its own time, by interrupts, which cost. */
static struct { u64 came, cost; } counted[MOST_ROUNDS];

static void report(const char *name, u64 sent, u32 rounds)
{
    u32 round;

    for (round = 0; round < rounds; round++) {
        say("round "); say(name);
        say(" "); say_number(sent);
        say(" "); say_number(counted[round].came);
        say(" "); say_number(counted[round].cost); say("\n");
    }
}

/* The first connections, a batch before those that count, find everything ready that is made only once. */
static void connections(const char *name, u32 (*open)(u32, u32), u32 count, u32 rounds)
{
    u32 round, begun;

    patience = PATIENCE;
    if (open(FIRST_NEW - BATCH, BATCH) != BATCH) fail("the first connections were not served", 0);
    patience = 0;
    for (round = 0; round < rounds; round++) {
        u64 good = 0, before = instructions();
        for (begun = 0; begun < count; begun += BATCH) good += open(FIRST_NEW + round * count + begun, BATCH);
        counted[round].cost = instructions() - before;
        counted[round].came = good;
    }
    report(name, count, rounds);
}

/* Every flow has been answered before the first round, and nobody listens: what is counted is what passes. */
static void stream(u32 flows, u32 packets, u32 rounds)
{
    u32 flow, round, sent;

    patience = PATIENCE;
    for (flow = 0; flow < flows; flow += BATCH) {
        u32 count = flows - flow < BATCH ? flows - flow : BATCH;
        if (udp_connections(flow, count) != count) fail("a flow was not answered", 0);
    }
    kernel(CLOSE, client.listens, 0, 0, 0, 0, 0);
    kernel(CLOSE, server.listens, 0, 0, 0, 0, 0);
    for (sent = 0; sent < packets; sent++) ask(sent, sent % flows, 1, UDP, 0, 0, 0);
    for (round = 0; round < rounds; round++) {
        u64 came = received(&server), before = instructions();
        for (sent = 0; sent < packets; sent += BATCH) transmit(&client, out + sent, lengths + sent, BATCH);
        counted[round].cost = instructions() - before;
        counted[round].came = received(&server) - came;
    }
    report("stream", packets, rounds);
}

/* --- the command line ------------------------------------------------------------------------------------------------ */

static u32 number(const char *text)
{
    u32 value = 0;

    for (; *text >= '0' && *text <= '9'; text++) value = value * 10 + (*text - '0');
    if (*text) fail("a number was expected", 0);
    return value;
}

static void mac(u8 *to, const char *text)
{
    int i;

    for (i = 0; i < 12; i++, text++) {
        u32 digit = *text <= '9' ? *text - '0' : (*text | 32) - 'a' + 10;
        to[i / 2] = to[i / 2] << 4 | digit;
        if (i % 2 && i < 11 && *++text != ':') fail("a MAC address was expected", 0);
    }
}

/* Called with the stack as the kernel left it: the number of arguments, then they. */
void begin(u64 *stack)
{
    static u8 to_client_side[6], to_server_side[6];
    static u8 client_mac[6] = {2, 0, 0, 0, 0, 1}, server_mac[6] = {2, 0, 0, 0, 0, 2};
    char **arguments = (char **)(stack + 1);
    u64 count = stack[0];
    int streams = count == 8 && arguments[1][0] == 's', first = streams ? 3 : 2;

    if (!streams && (count != 7 || (arguments[1][0] != 'u' && arguments[1][0] != 't'))) fail("wrong usage", 0);
    mac(to_client_side, arguments[first + 2]);
    mac(to_server_side, arguments[first + 3]);
    vlan = number(arguments[first + 4]);
    if (number(arguments[first]) > MOST || number(arguments[first]) % BATCH)
        fail("at most 16384 at a time, in steps of 32", 0);
    if (number(arguments[first + 1]) > MOST_ROUNDS) fail("at most 64 rounds", 0);
    open_end(&client, "/run/netns/client", to_client_side, client_mac);
    open_end(&server, "/run/netns/server", to_server_side, server_mac);
    if (streams)
        stream(number(arguments[2]), number(arguments[3]), number(arguments[4]));
    else if (arguments[1][0] == 'u')
        connections("udp", udp_connections, number(arguments[2]), number(arguments[3]));
    else
        connections("tcp", tcp_connections, number(arguments[2]), number(arguments[3]));
    kernel(EXIT, 0, 0, 0, 0, 0, 0);
}
