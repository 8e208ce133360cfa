/* An end of the wire: packet sockets in a network namespace, its interface's counters, and the last frames received. */

enum { BATCH = 32, FRAME = 68, BUFFER = 2048, ETH_P_IP = 0x0800 };

struct end {
    int sends, listens;     /* sockets */
    int counters;           /* /proc/net/dev of its namespace */
    int interface;
    u8 to[6], from[6];      /* MAC addresses of what it sends */
    u8 in[BATCH][BUFFER];   /* what was received last */
};

static struct end client, server;

/* True: sleep until all frames have arrived, because the device under test is a program; there is no idle time then.
 * Sockets end the sleep after two seconds. */
static int waits;

/* Compilers generate calls of it. */
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
    static long two_seconds[2] = {2, 0};
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
    if (waits) kernel(SETSOCKOPT, end->listens, SOL_SOCKET, SO_RCVTIMEO, (long)two_seconds, sizeof two_seconds, 0);
    copy(end->to, to, 6);
    copy(end->from, from, 6);
}

/* Returns the packets that the interface has received: the second number behind its name in /proc/net/dev. */
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

/* How often to look again, a millisecond later, for missing frames: a program may decide on a first packet (upcall). It
 * is 0 while the instructions of new connections are counted, because time asleep counts as well. */
static u32 patience;

/* Receives up to `count` frames; returns how many arrived. */
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
        status = kernel(RECVMMSG, end->listens, (long)(messages + came), count - came, waits ? 0 : DONT_WAIT, 0, 0);
        came += status < 0 ? 0 : status;
        if (came == count || !left--) return came;
        kernel(NANOSLEEP, (long)millisecond, 0, 0, 0, 0, 0);
    }
}
