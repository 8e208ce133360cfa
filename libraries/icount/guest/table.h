/* The kernel's table of connections, by a socket of netlink(7) to nfnetlink_conntrack, as conntrack(8) uses one. */

struct header { u32 length; u16 type, flags; u32 number, port; };
struct request { struct header header; u8 family, version; u16 resource; };

enum { OF_CONNTRACK = 1 << 8, CT_GET = 1, CT_DELETE = 2 };   /* nfnetlink_conntrack.h */
enum { FAILED = 2, DONE = 3, REQUEST = 1, DUMP = 0x300 };    /* netlink.h */

/* Enters the namespace `dut` and returns a socket to its connection table. */
static int table_socket(void)
{
    long status = kernel(SETNS, open_file("/run/netns/dut"), NEW_NETWORK, 0, 0, 0, 0);

    if (status) fail("/run/netns/dut", status);
    if ((status = kernel(SOCKET, AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER, 0, 0, 0)) < 0)
        fail("a socket to the kernel's table of connections", status);
    return status;
}

/* Returns the number of entries in the kernel's connection table, from nf_conntrack_count opened in its namespace. */
static u64 tracked(int file)
{
    static char text[32];
    long length = kernel(READ_AT, file, (long)text, sizeof text - 1, 0, 0, 0);
    u64 value = 0;
    char *at;

    if (length < 0) fail("nf_conntrack_count", length);
    for (at = text; *at >= '0' && *at <= '9'; at++) value = value * 10 + (*at - '0');
    return value;
}

/* Removes all connections from the table, as conntrack -F does. Returns the instructions that it cost. The kernel has
 * removed them when the call returns. */
static u64 empty_table(int socket)
{
    static struct request all = {{sizeof all, OF_CONNTRACK | CT_DELETE, REQUEST, 0, 0}, 0, 0, 0};
    u64 before = instructions();
    long status = kernel(SENDTO, socket, (long)&all, sizeof all, 0, 0, 0);

    if (status != sizeof all) fail("emptying the table", status);
    return instructions() - before;
}

/* Reads all connections out of the table, as conntrack -L and Open vSwitch's dpctl/dump-conntrack do, 8 KB at a time;
 * nothing is printed. Returns the instructions that it cost; sets `entries` to the number of connections. */
static u64 dump_table(int socket, u64 *entries)
{
    static struct request all = {{sizeof all, OF_CONNTRACK | CT_GET, REQUEST | DUMP, 0, 0}, 0, 0, 0};
    static u8 part[8192];
    u64 before = instructions();
    long length = kernel(SENDTO, socket, (long)&all, sizeof all, 0, 0, 0);

    if (length != sizeof all) fail("asking for the table", length);
    for (*entries = 0;;) {
        u8 *at = part;
        length = kernel(RECVFROM, socket, (long)part, sizeof part, 0, 0, 0);
        if (length <= 0) fail("reading the table", length);
        while (at < part + length) {
            struct header *each = (struct header *)at;
            if (each->type == FAILED) fail("the table was refused", 0);
            if (each->type == DONE) return instructions() - before;
            ++*entries;
            at += (each->length + 3) & ~3;
        }
    }
}
