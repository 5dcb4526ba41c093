/*
 * A library to preload: every sync of a file takes SLOW_SYNC_MS milliseconds longer, 20 if it is not set.
 *
 *     cc -shared -fPIC -O2 -o slow-sync.so slow-sync.c -ldl
 *     LD_PRELOAD=$PWD/slow-sync.so some-program
 *
 * It affects calls of the C library, which Rust's standard library makes, and no direct system calls.
 * The call itself comes after the wait, so its result and errno are the caller's.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <time.h>

static long wait_ms = 20;

__attribute__((constructor)) static void read_wait(void)
{
    const char *text = getenv("SLOW_SYNC_MS");
    char *end;

    if (text == NULL || *text == '\0')
        return;
    long ms = strtol(text, &end, 10);
    if (*end == '\0' && ms >= 0)
        wait_ms = ms;
}

/* A signal does not shorten it. */
static void wait_first(void)
{
    int kept = errno;
    struct timespec left = {wait_ms / 1000, wait_ms % 1000 * 1000000};

    while (nanosleep(&left, &left) == -1 && errno == EINTR) {
    }
    errno = kept;
}

/* The function of this name that would be called without this library. */
static void *next(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);

    if (found == NULL)
        abort();
    return found;
}

int fsync(int fd)
{
    int (*real)(int) = (int (*)(int))next("fsync");

    wait_first();
    return real(fd);
}

int fdatasync(int fd)
{
    int (*real)(int) = (int (*)(int))next("fdatasync");

    wait_first();
    return real(fd);
}

int sync_file_range(int fd, off64_t offset, off64_t bytes, unsigned int flags)
{
    int (*real)(int, off64_t, off64_t, unsigned int) =
        (int (*)(int, off64_t, off64_t, unsigned int))next("sync_file_range");

    wait_first();
    return real(fd, offset, bytes, flags);
}

int msync(void *start, size_t bytes, int flags)
{
    int (*real)(void *, size_t, int) = (int (*)(void *, size_t, int))next("msync");

    if (flags & MS_SYNC)
        wait_first();
    return real(start, bytes, flags);
}
