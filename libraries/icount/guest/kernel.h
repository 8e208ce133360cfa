/* System calls, the machine's own clock, and lines on the terminal, without a library. A file that includes this
 * defines `program`, its name. */

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;

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
       SETNS = 308, SENDMMSG = 307, RECVMMSG = 299, SENDTO = 44, RECVFROM = 45, SETSOCKOPT = 54 };
enum { AF_PACKET = 17, SOCK_RAW = 3, SIOCGIFINDEX = 0x8933, DONT_WAIT = 0x40,
       NEW_NETWORK = 0x40000000, SOL_SOCKET = 1, SO_RCVTIMEO = 20, AF_NETLINK = 16, NETLINK_NETFILTER = 12 };

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
    say(program); say(": "); say(what); say(": error "); say_number(status < 0 ? -status : status); say("\n");
    kernel(EXIT, 1, 0, 0, 0, 0, 0);
}
