/*
 * A library to preload: a sync of a file does not return as long as the file HOLD_SYNC_FILE holds the number of the process
 * that calls it. The first sync of a process that waits adds that number to a second file, with `.seen` after its name.
 *
 * It affects calls of the C library, which Rust's standard library makes, and no direct system calls.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static const char *path;

__attribute__((constructor)) static void read_path(void)
{
    path = getenv("HOLD_SYNC_FILE");
}

static int is_held(void)
{
    char text[32];
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd == -1)
        return 0;
    ssize_t count = read(fd, text, sizeof text - 1);
    close(fd);
    if (count <= 0)
        return 0;
    text[count] = '\0';
    return strtol(text, NULL, 10) == (long)getpid();
}

static void note(void)
{
    char name[4096], line[32];
    int length = snprintf(name, sizeof name, "%s.seen", path);

    if (length < 0 || (size_t)length >= sizeof name)
        return;
    int fd = open(name, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (fd == -1)
        return;
    length = snprintf(line, sizeof line, "%ld\n", (long)getpid());
    if (write(fd, line, (size_t)length) == -1)
        errno = 0;
    close(fd);
}

static void wait_first(void)
{
    int kept = errno, noted = 0;
    struct timespec pause = {0, 2000000};

    if (path == NULL)
        return;
    while (is_held()) {
        if (!noted)
            note();
        noted = 1;
        nanosleep(&pause, NULL);
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
