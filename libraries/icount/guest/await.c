/* Stops the emulated machine at one and the same instruction, so that its state can be saved. When the machine is
 * started from that state, prints the input that it was given.
 *
 * A byte to the port of pvpanic (docs/specs/pvpanic.txt of QEMU) stops the machine at the next instruction. That is a
 * jump to itself, and an alarm ends it: when QEMU stops, its clock stands where it was or, if QEMU finds the machine
 * idle first, at its next interrupt. Either way this interrupt finds the machine at the same time at the same
 * instruction, with the same registers, so that both go on in the same way.
 *
 * The input is a file of fw_cfg (docs/specs/fw_cfg.txt of QEMU), read through I/O ports: the time of the reading
 * depends only on the machine's own instructions.
 *
 * No library: see traffic.c.
 */

static const char *const program = "await";
#include "kernel.h"

enum { SIGACTION = 13, SETITIMER = 38, IOPL = 172, SIGALRM = 14, SA_RESTORER = 0x04000000 };
/* Ports of fw_cfg, and its key for the list of files. */
enum { SELECT = 0x510, DATA = 0x511, FILES = 0x19, LONGEST_NAME = 56 };

void stop(void);
void out(u32 port, u32 value);
u32 in(u32 port);
__asm__(".globl stop\n"
        "stop:\n"
        "mov $0x505, %edx\n mov $1, %eax\n out %al, %dx\n"
        "jmp .\n"
        ".globl out\n"
        "out:\n"
        "mov %edi, %edx\n mov %esi, %eax\n out %ax, %dx\n ret\n"
        ".globl in\n"
        "in:\n"
        "mov %edi, %edx\n xor %eax, %eax\n in %dx, %al\n ret\n");

/* Read the next bytes as a big-endian number. */
static u32 next(int bytes)
{
    u32 value = 0;

    while (bytes--) value = value << 8 | in(DATA);
    return value;
}

/* Read the next name; true where it is this one. */
static int is_next(const char *name)
{
    int same = 1, at, ended = 0;

    for (at = 0; at < LONGEST_NAME; at++) {
        char found = next(1);
        if (!ended && found != name[at]) same = 0;
        ended = ended || !name[at];
    }
    return same;
}

static void say_file(u32 key, u32 size)
{
    static char part[4096];
    u32 length;

    for (out(SELECT, key); size; size -= length) {
        for (length = 0; length < size && length < sizeof part; length++) part[length] = next(1);
        kernel(WRITE, 1, (long)part, length, 0, 0, 0);
    }
}

static void go_on(int signal)
{
    u32 files;

    (void)signal;
    out(SELECT, FILES);
    for (files = next(4); files; files--) {
        u32 size = next(4), key = next(4) >> 16;
        if (is_next("opt/ctbench/given")) {
            say_file(key, size);
            kernel(EXIT, 0, 0, 0, 0, 0, 0);
        }
    }
    fail("nothing was given", 0);
}

/* Called with the stack as the kernel left it. It ends in `go_on`, which never returns. */
void begin(u64 *stack)
{
    static struct { void (*handler)(int); u64 flags; void (*restorer)(void); u64 mask; } action
        = {go_on, SA_RESTORER, stop, 0};
    static long soon[4] = {0, 0, 0, 10000};   /* in 10 ms */
    long status = kernel(IOPL, 3, 0, 0, 0, 0, 0);

    (void)stack;
    if (status) fail("the right to use ports", status);
    if ((status = kernel(SIGACTION, SIGALRM, (long)&action, 0, 8, 0, 0))) fail("a signal's handler", status);
    if ((status = kernel(SETITIMER, 0, (long)soon, 0, 0, 0, 0))) fail("an alarm", status);
    stop();
}
