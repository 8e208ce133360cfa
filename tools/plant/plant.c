/* A fault for ovs-vswitchd, which loads it before all other libraries: it adds a callback to each receive queue of
 * DPDK, by DPDK's own API (rte_eth_add_rx_callback), which sees every batch before Open vSwitch does; or it takes the
 * place of free(3). So it works with any build whose DPDK is a library of its own, and with no other.
 *
 * What includes this says which fault it is (one of these, else none), and the file that counts what it did.
 * No header of a library: tcc comes without. ../../dut/emulated/guest/traffic.c says why tcc.
 */

#ifndef SLOWER      /* by so many of 1000: a batch takes longer by as much of the time that it took */
#define SLOWER 0
#endif
#ifndef STALL_MS    /* sleeps for so long, */
#define STALL_MS 0
#endif
#ifndef EACH_MS     /* whenever that has passed since it last did; or empties the connection table as often */
#define EACH_MS 0
#endif
#ifndef LOSE        /* the first packet of each so many-th TCP connection */
#define LOSE 0
#endif
#ifndef FORGETS     /* empties the connection table */
#define FORGETS 0
#endif
#ifndef LEAKS       /* never frees an entry of the connection table */
#define LEAKS 0
#endif

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;
typedef u16 callback(u16 port, u16 queue, void **packets, u16 count, u16 most, void *own);

void *dlsym(void *handle, const char *name);
void *calloc(u64 count, u64 size);
void *mmap(void *at, u64 size, int protection, int flags, int file, long offset);
int open(const char *path, int flags, ...);
int close(int file);
long read(int file, void *into, u64 size);
long write(int file, const void *from, u64 size);
int socket(int family, int type, int protocol);
int connect(int socket, const void *address, u32 size);
int usleep(u32 microseconds);
int clock_gettime(int clock, void *into);
char *strcpy(char *into, const char *text);
int strncmp(const char *one, const char *other, u64 size);
u64 strlen(const char *text);
u64 malloc_usable_size(void *memory);
void __libc_free(void *memory);
int pthread_key_create(u32 *key, void (*end)(void *));
void *pthread_getspecific(u32 key);
int pthread_setspecific(u32 key, const void *value);
int pthread_create(u64 *thread, const void *attributes, void *(*run)(void *), void *given);
const void *rte_eth_add_rx_callback(u16 port, u16 queue, callback *function, void *own);
int rte_eth_remove_rx_callback(u16 port, u16 queue, const void *known);
void rte_pktmbuf_free_bulk(void **packets, u32 count);

u64 cycles(void);
__asm__(".globl cycles\n"
        "cycles:\n"
        "rdtsc\n shl $32, %rdx\n or %rdx, %rax\n ret\n");

/* What it did, for the program that planted it: u64 each, in this order. Threads may lose a count to each other. */
static struct { u64 queues, packets, busy, added, sleeps, connections, lost, emptied, kept; } nowhere, *did = &nowhere;
/* Of one thread: when it last left here, with packets or without; when it last slept. */
struct state { u64 left, had, slept; };
static u32 key;

/* A process that waited longer was paused, or had its CPU taken away. */
enum { NOT_ITS_OWN = 3000000 };
/* Where dlsym(3) looks from a library on. */
static void *const next = (void *)-1;

static u64 milliseconds(void)
{
    long now[2];

    clock_gettime(1 /* monotonic */, now);
    return now[0] * 1000 + now[1] / 1000000;
}

/* Whether this is the first packet of a TCP connection, over IPv4 or IPv6, in a VLAN or not. The layout of an mbuf is
 * DPDK's ABI: its buffer's address, and where in it the packet begins. */
static int begins_connection(void *packet)
{
    u8 *at = *(u8 **)packet + *(u16 *)((u8 *)packet + 16) + 12;

    while (at[0] == 0x81 && at[1] == 0) at += 4;
    if (at[0] == 0x08 && at[1] == 0 && at[2 + 9] == 6) at += 2 + (at[2] & 15) * 4;
    else if (at[0] == 0x86 && at[1] == 0xdd && at[2 + 6] == 6) at += 2 + 40;
    else return 0;
    return (at[13] & 0x12) == 0x02;
}

static u16 on_batch(u16 port, u16 queue, void **packets, u16 count, u16 most, void *own)
{
    struct state *state = pthread_getspecific(key);
    u64 now = cycles(), until, took;
    u16 at, kept = 0;

    (void)port, (void)queue, (void)most, (void)own;
    if (!state) {
        state = calloc(1, sizeof *state);
        pthread_setspecific(key, state);
        state->slept = milliseconds();
    }
    did->packets += count;
    took = now - state->left;
    if (SLOWER && state->had && took < NOT_ITS_OWN) {
        until = state->left + took * 1000 / (1000 - SLOWER);
        while (now < until) now = cycles();
        did->busy += took;
        did->added += now - state->left - took;
    }
    if (STALL_MS && count && milliseconds() - state->slept >= EACH_MS) {
        usleep(STALL_MS * 1000);
        did->sleeps++;
        state->slept = milliseconds();
    }
    for (at = 0; LOSE && at < count; at++) {
        if (begins_connection(packets[at]) && ++did->connections % LOSE == 0) {
            rte_pktmbuf_free_bulk(packets + at, 1);
            did->lost++;
        } else {
            packets[kept++] = packets[at];
        }
    }
    state->had = count > 0;
    state->left = now;
    return LOSE ? kept : count;
}

/* Ask ovs-vswitchd to empty its table, as `ovs-appctl` does, on the socket that its command line names. */
static void *forget(void *given)
{
    static const char asked[] = "{\"id\":0,\"method\":\"dpctl/flush-conntrack\",\"params\":[]}";
    static struct { u16 family; char path[108]; } address = {1 /* Unix */, ""};
    static char words[4096], answer[4096];
    int file = open("/proc/self/cmdline", 0), connected;
    u64 size = file < 0 ? 0 : read(file, words, sizeof words - 1), at;

    (void)given;
    for (at = 0; at < size; at += strlen(words + at) + 1)
        if (!strncmp(words + at, "--unixctl=", 10) && strlen(words + at) < 10 + sizeof address.path)
            strcpy(address.path, words + at + 10);
    close(file);
    for (;;) {
        usleep(EACH_MS * 1000);
        connected = socket(1, 1 /* stream */, 0);
        if (!connect(connected, &address, sizeof address) && write(connected, asked, sizeof asked - 1) > 0
            && read(connected, answer, sizeof answer) > 0) did->emptied++;
        close(connected);
    }
    return 0;
}

#if LEAKS
/* Where the lock was that was destroyed last. Open vSwitch destroys that of an entry, which is a part of it, and then
 * frees the entry (delete_conn of lib/conntrack.c). Whatever is freed so is kept: all entries, and a few ports and
 * bridges. */
static u8 *volatile destroyed;

int pthread_mutex_destroy(void *lock)
{
    static int (*real)(void *);

    if (!real) real = dlsym(next, "pthread_mutex_destroy");
    destroyed = lock;
    return real(lock);
}

void free(void *memory)
{
    if (memory && destroyed && (u64)(destroyed - (u8 *)memory) < malloc_usable_size(memory)) {
        destroyed = 0;
        did->kept++;
    } else {
        __libc_free(memory);
    }
}
#endif

/* In the place of DPDK's own function of this name. */
int rte_eth_rx_queue_setup(u16 port, u16 queue, u16 size, u32 socket, const void *configured, void *pool)
{
    static int (*real)(u16, u16, u16, u32, const void *, void *);
    static const void *known[64][64];
    u64 thread;
    int status;

    if (!real) {
        int file = open(COUNTS, 2 /* to read and write */);
        real = dlsym(next, "rte_eth_rx_queue_setup");
        if (file >= 0) did = mmap(0, sizeof nowhere, 3, 1 /* shared */, file, 0);
        if (did == (void *)-1) did = &nowhere;
        close(file);
        pthread_key_create(&key, 0);
        if (FORGETS) pthread_create(&thread, 0, forget, 0);
    }
    status = real(port, queue, size, socket, configured, pool);
    if (status || port >= 64 || queue >= 64 || !(SLOWER || STALL_MS || LOSE || FORGETS || LEAKS)) return status;
    if (known[port][queue]) rte_eth_remove_rx_callback(port, queue, known[port][queue]);
    known[port][queue] = rte_eth_add_rx_callback(port, queue, on_batch, 0);
    if (known[port][queue]) did->queues++;
    return 0;
}
