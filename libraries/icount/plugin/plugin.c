/* Counts what an emulated machine executes, by address, between two readings of its time-stamp counter: a plugin of
 * QEMU's translator (docs/devel/tcg-plugins.rst there; -plugin).
 *
 *   -plugin plugin.so,out=FILE,mark=ADDRESS
 *
 * ADDRESS is the address of the instruction with which guest/traffic reads the counter: once at the start of a round,
 * and once at its end. For each round FILE has a line `round`, and for each block of instructions that ran in it
 *   ADDRESS INSTRUCTIONS
 * with the address of the block's first instruction, in hexadecimal, and how many of its instructions were executed.
 *
 * The machine does not change: the plugin's counting executes no instruction in it. Each instruction adds one to the
 * counter of its block, so that a block that an exception interrupts counts only the instructions it executed.
 *
 * The interface is declared here, as packages of QEMU have no header of it (include/qemu/qemu-plugin.h, version 1). QEMU
 * 9.0 and later want version 2 (-DPER_CPU), in which each CPU has a counter of its own; the machine has one CPU.
 */

typedef unsigned long u64;
typedef struct tb tb;
typedef struct insn insn;

extern void qemu_plugin_register_vcpu_tb_trans_cb(u64 id, void (*call)(u64 id, tb *));
extern void qemu_plugin_register_vcpu_insn_exec_cb(insn *, void (*call)(unsigned cpu, void *), int registers, void *);
extern u64 qemu_plugin_tb_n_insns(const tb *);
extern u64 qemu_plugin_tb_vaddr(const tb *);
extern insn *qemu_plugin_tb_get_insn(const tb *, u64 number);
extern u64 qemu_plugin_insn_vaddr(const insn *);

extern void *calloc(u64, u64);
extern int strncmp(const char *, const char *, u64);
extern u64 strtoul(const char *, char **, int);
extern void *fopen(const char *, const char *);
extern int fprintf(void *, const char *, ...);
extern int fflush(void *);

#ifdef PER_CPU

typedef struct { struct scoreboard *of_cpus; u64 offset; } counter;

extern struct scoreboard *qemu_plugin_scoreboard_new(u64 size);
extern void *qemu_plugin_scoreboard_find(struct scoreboard *, unsigned cpu);
extern void qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(insn *, int operation, counter, u64 by);

int qemu_plugin_version = 2;

static counter new_counter(void) { return (counter) { qemu_plugin_scoreboard_new(sizeof(u64)), 0 }; }
static u64 *value_of(counter each) { return qemu_plugin_scoreboard_find(each.of_cpus, 0); }
static void count(insn *each, counter in) { qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(each, 0, in, 1); }

#else

typedef u64 *counter;

extern void qemu_plugin_register_vcpu_insn_exec_inline(insn *, int operation, void *counter, u64 by);

int qemu_plugin_version = 1;

static counter new_counter(void) { return calloc(1, sizeof(u64)); }
static u64 *value_of(counter each) { return each; }
static void count(insn *each, counter in) { qemu_plugin_register_vcpu_insn_exec_inline(each, 0, in, 1); }

#endif

/* A block: how many of its instructions were executed, and how many before the round began. */
struct block { u64 address, *executed, before; struct block *next; };

static struct block *blocks;
static void *out;
static u64 mark;
static int in_round;

static void marked(unsigned cpu, void *unused)
{
    struct block *each;

    in_round = !in_round;
    if (!in_round) fprintf(out, "round\n");
    for (each = blocks; each; each = each->next) {
        if (!in_round && *each->executed != each->before)
            fprintf(out, "%lx %lu\n", each->address, *each->executed - each->before);
        each->before = *each->executed;
    }
    fflush(out);
}

static void translated(u64 id, tb *tb)
{
    u64 instructions = qemu_plugin_tb_n_insns(tb), number;
    struct block *block = calloc(1, sizeof *block);
    counter executed = new_counter();

    block->address = qemu_plugin_tb_vaddr(tb);
    block->executed = value_of(executed);
    block->next = blocks;
    blocks = block;
    for (number = 0; number < instructions; number++) {
        insn *each = qemu_plugin_tb_get_insn(tb, number);
        if (qemu_plugin_insn_vaddr(each) == mark) qemu_plugin_register_vcpu_insn_exec_cb(each, marked, 0, 0);
        count(each, executed);
    }
}

int qemu_plugin_install(u64 id, const void *machine, int count, char **arguments)
{
    int each;

    for (each = 0; each < count; each++) {
        if (!strncmp(arguments[each], "out=", 4)) out = fopen(arguments[each] + 4, "w");
        if (!strncmp(arguments[each], "mark=", 5)) mark = strtoul(arguments[each] + 5, 0, 16);
    }
    if (!out || !mark) return 1;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    return 0;
}
