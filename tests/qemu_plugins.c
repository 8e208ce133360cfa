/* Stands in for QEMU where it runs a plugin, in both versions of the interface (include/qemu/qemu-plugin.h): a block of two
 * instructions, which is translated once and executed a few times.
 */
#include <stdint.h>
#include <stdlib.h>

typedef struct { char *score; size_t offset; } qemu_plugin_u64;

#define INSTRUCTIONS 2
static void (*translate)(uint64_t, void *);
static void (*calls[INSTRUCTIONS])(unsigned, void *);
static uint64_t *counters[INSTRUCTIONS];

void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, void (*call)(uint64_t, void *)) { (void)id; translate = call; }
size_t qemu_plugin_tb_n_insns(const void *tb) { (void)tb; return INSTRUCTIONS; }
uint64_t qemu_plugin_tb_vaddr(const void *tb) { (void)tb; return 0x1000; }
void *qemu_plugin_tb_get_insn(const void *tb, size_t number) { (void)tb; return &counters[number]; }
uint64_t qemu_plugin_insn_vaddr(uint64_t **insn) { return 0x1000 + (insn - counters); }

void qemu_plugin_register_vcpu_insn_exec_cb(uint64_t **insn, void (*call)(unsigned, void *), int flags, void *data)
{
    (void)flags, (void)data;
    calls[insn - counters] = call;
}

void qemu_plugin_register_vcpu_insn_exec_inline(uint64_t **insn, int add, void *to, uint64_t by)
{
    if (add == 0 && by == 1) *insn = to;
}

void *qemu_plugin_scoreboard_new(size_t size) { return calloc(16, size); }
void *qemu_plugin_scoreboard_find(char *score, unsigned cpu) { return cpu ? NULL : score; }

void qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(uint64_t **insn, int add, qemu_plugin_u64 to, uint64_t by)
{
    if (add == 0 && by == 1) *insn = (uint64_t *)(to.score + to.offset);
}

void qemu_run(int times)
{
    translate(1, NULL);
    while (times--)
        for (int each = 0; each < INSTRUCTIONS; each++) {
            if (calls[each]) calls[each](0, NULL);
            ++*counters[each];
        }
}
