/* Sends packets through a device under test, counts those that come out, and reads their cost in instructions: the
 * emulated machine's time-stamp counter ticks once an instruction.
 *
 * It stands between two network namespaces, `client` and `server` (ip-netns(8)), each of which has one end of a wire
 * to the device under test, the interface `wire`. Frames go in and come out there through packet sockets (packet(7)).
 * Everything is in lock-step: a batch goes in, and the kernel has forwarded all of it when the system call returns,
 * because the machine has one CPU.
 *
 *   traffic stream FLOWS PACKETS ROUNDS  MAC MAC VLAN   UDP packets of FLOWS flows, client to server
 *   traffic udp    CONNECTIONS   ROUNDS  MAC MAC VLAN   new UDP connections: a request and a reply
 *   traffic tcp    CONNECTIONS   ROUNDS  MAC MAC VLAN   new TCP connections: opened and closed without data
 *   traffic removal CONNECTIONS  ROUNDS  MAC MAC VLAN   removes UDP connections from the kernel's table; the namespace
 *                                                       of the device under test is `dut`
 *   traffic dump   CONNECTIONS   ROUNDS  MAC MAC VLAN   reads UDP connections out of that table
 *
 * The MAC addresses are those that the client's and the server's frames go to. VLAN 0 sends frames without a tag.
 * With `waits` as the last argument, it waits for each batch: the device under test is a program, which runs meanwhile.
 * It prints `round NAME SENT RECEIVED INSTRUCTIONS` for each round, counted in packets (stream) or connections, and
 * ends with status 1 and a sentence where it cannot go on.
 *
 * It needs no library: any C compiler compiles it, and the machine that it starts in has none. Linux on x86-64.
 */

static const char *const program = "traffic";
#include "kernel.h"
#include "wire.h"
#include "frames.h"
#include "table.h"

enum { MOST = 16384, MOST_ROUNDS = 64, PATIENCE = 2000 };
/* The first flow of new connections; flows of streams have smaller numbers. */
enum { FIRST_NEW = 1 << 20 };

/* --- flows ---------------------------------------------------------------------------------------------------------- */

/* Client addresses 16.0.0.0 to 16.0.0.255 with ports from 1024 on, to servers 48.0.0.0 to 48.0.0.255. */
static u32 client_of(u32 flow) { return 0x10000000 + flow % 256; }
static u32 server_of(u32 flow) { return 0x30000000 + flow % 256; }
static u32 port_of(u32 flow) { return 1024 + flow / 256; }
static u32 service(int protocol) { return protocol == TCP ? 8080 : 5353; }

static u8 out[MOST][FRAME];
static u16 lengths[MOST];

/* Write the frames that the clients of `count` flows, from `flow` on, send in one step. */
static void ask(u32 at, u32 flow, u32 count, int protocol, u32 flags, u32 seq, u32 ack)
{
    u32 i;

    for (i = 0; i < count; i++)
        lengths[at + i] = write_frame(out[at + i], &client, protocol, client_of(flow + i), server_of(flow + i),
                                      port_of(flow + i), service(protocol), flags, seq, ack);
}

/* Write the answers to the frames that the server received, to their source addresses, which may be translated.
 * Returns their number, 0 where a frame has another protocol. */
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

/* Returns how many answers came back to the client that asked, from the server that it asked. */
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

/* Results, printed when all rounds are over: the serial line sends its output later, by interrupts, which cost
 * instructions. */
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

/* Warm-up: a first batch, which does not count, creates everything that is created only once. */
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

static void fill_table(u32 round, u32 count)
{
    u32 begun;

    for (begun = 0; begun < count; begun += BATCH) udp_connections(FIRST_NEW + round * count + begun, BATCH);
}

/* A round removes the connections opened before it, and counts how many are gone. The cost of a walk through an empty
 * table is subtracted. */
static void removal(u32 count, u32 rounds)
{
    u32 round;
    int socket = table_socket(), table = open_file("/proc/sys/net/netfilter/nf_conntrack_count");

    patience = PATIENCE;
    empty_table(socket);
    for (round = 0; round < rounds; round++) {
        u64 held;
        fill_table(round, count);
        held = tracked(table);
        counted[round].cost = empty_table(socket);
        counted[round].came = held - tracked(table);
        counted[round].cost -= empty_table(socket);
    }
    report("removal", count, rounds);
}

/* A round reads the connections opened before it out of the table, net of a walk through an empty table. */
static void dump(u32 count, u32 rounds)
{
    u32 round;
    int socket = table_socket();
    u64 none;

    patience = PATIENCE;
    empty_table(socket);
    dump_table(socket, &none);
    for (round = 0; round < rounds; round++) {
        fill_table(round, count);
        counted[round].cost = dump_table(socket, &counted[round].came);
        empty_table(socket);
        counted[round].cost -= dump_table(socket, &none);
    }
    report("dump", count, rounds);
}

/* Before the first round every flow is answered and sends once more, so that a switch has flows for its packets. No
 * socket receives the packets of the rounds (except with `waits`): the interface's counter counts them. */
static void stream(u32 flows, u32 packets, u32 rounds)
{
    u32 flow, round, sent;

    patience = PATIENCE;
    for (flow = 0; flow < flows; flow += BATCH) {
        u32 count = flows - flow < BATCH ? flows - flow : BATCH;
        if (udp_connections(flow, count) != count) fail("a flow was not answered", 0);
        ask(0, flow, count, UDP, 0, 0, 0);
        if (to_server(count) != count) fail("a flow that was answered did not go on", 0);
    }
    kernel(CLOSE, client.listens, 0, 0, 0, 0, 0);
    if (!waits) kernel(CLOSE, server.listens, 0, 0, 0, 0, 0);
    for (sent = 0; sent < packets; sent++) ask(sent, sent % flows, 1, UDP, 0, 0, 0);
    for (round = 0; round < rounds; round++) {
        u64 came = received(&server), before = instructions();
        for (sent = 0; sent < packets; sent += BATCH) {
            transmit(&client, out + sent, lengths + sent, BATCH);
            if (waits) receive(&server, BATCH);
        }
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

/* Called with the stack as the kernel left it: the number of arguments, then the arguments. */
void begin(u64 *stack)
{
    static u8 to_client_side[6], to_server_side[6];
    static u8 client_mac[6] = {2, 0, 0, 0, 0, 1}, server_mac[6] = {2, 0, 0, 0, 0, 2};
    char **arguments = (char **)(stack + 1);
    u64 count = stack[0];
    int streams, first;
    char what;

    if (count > 7 && arguments[count - 1][0] == 'w') { waits = 1; count--; }
    what = count > 1 ? arguments[1][0] : 0;
    streams = count == 8 && what == 's';
    first = streams ? 3 : 2;
    if (!streams && (count != 7 || (what != 'u' && what != 't' && what != 'r' && what != 'd'))) fail("wrong usage", 0);
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
    else if (what == 'u')
        connections("udp", udp_connections, number(arguments[2]), number(arguments[3]));
    else if (what == 'r')
        removal(number(arguments[2]), number(arguments[3]));
    else if (what == 'd')
        dump(number(arguments[2]), number(arguments[3]));
    else
        connections("tcp", tcp_connections, number(arguments[2]), number(arguments[3]));
    kernel(EXIT, 0, 0, 0, 0, 0, 0);
}
