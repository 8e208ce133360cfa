/* In the place of ovs-vswitchd: becomes the real one (REAL), with a library preloaded (PLANT). KERNEL is what the
 * programs of the emulated machine have as well.
 */

static const char *const program = "ovs-vswitchd";
#include KERNEL

enum { EXECVE = 59, MOST = 1000 };

/* Called with the stack as the kernel left it: the number of arguments, they, and the environment. */
void begin(u64 *stack)
{
    static u64 environment[MOST];
    u64 *before = stack + stack[0] + 2;
    int at;

    environment[0] = (u64)"LD_PRELOAD=" PLANT;
    for (at = 1; at < MOST - 1 && before[at - 1]; at++) environment[at] = before[at - 1];
    fail("the real one", kernel(EXECVE, (long)REAL, (long)(stack + 1), (long)environment, 0, 0, 0));
}
