/* Preloaded into the process of a simulated run: what the system draws at random is the same in each run of a seed.
 *
 * The hash tables of the standard library, the scheduler of tokio with its select!, and the random numbers of Raft take
 * their seeds from here, and from nowhere else. Each thread has the same sequence, so it does not matter which of them
 * comes first. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>

static __thread uint64_t drawn;
static __thread int begun;

static uint64_t next(void) {
    if (!begun) {
        const char *seed = getenv("SIM_RUN_SEED");
        drawn = seed ? strtoull(seed, NULL, 10) * 0xda942042e4dd58b5u : 0;
        begun = 1;
    }
    uint64_t mixed = drawn += 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    return mixed ^ (mixed >> 31);
}

ssize_t getrandom(void *buffer, size_t length, unsigned int flags) {
    (void)flags;
    for (size_t at = 0; at < length; at++) {
        ((unsigned char *)buffer)[at] = (unsigned char)next();
    }
    return (ssize_t)length;
}
