/*
 * A library to preload, by which the disk of a process hangs or fails:
 *
 * - a sync of a file does not return as long as the file HOLD_SYNC_FILE holds the number of the process that calls it;
 * - a sync fails with EIO, and syncs nothing, as long as the file FAIL_SYNC_FILE holds that number.
 *
 * Each sync that waits or fails adds that number to another file, which has the name of the first one and `.seen` after it.
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

static const char *hold_path, *fail_path;

__attribute__((constructor)) static void read_paths(void)
{
    hold_path = getenv("HOLD_SYNC_FILE");
    fail_path = getenv("FAIL_SYNC_FILE");
}

/* Whether there is such a file, and it holds the number of this process. */
static int names_us(const char *path)
{
    char text[32];

    if (path == NULL)
        return 0;
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

static void note(const char *path)
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

/* Waits as long as syncs are held. Returns -1, with the error, if the sync must fail. */
static int begin_sync(void)
{
    int kept = errno, noted = 0;
    struct timespec pause = {0, 2000000};

    while (names_us(hold_path)) {
        if (!noted)
            note(hold_path);
        noted = 1;
        nanosleep(&pause, NULL);
    }
    if (names_us(fail_path)) {
        note(fail_path);
        errno = EIO;
        return -1;
    }
    errno = kept;
    return 0;
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

    return begin_sync() == 0 ? real(fd) : -1;
}

int fdatasync(int fd)
{
    int (*real)(int) = (int (*)(int))next("fdatasync");

    return begin_sync() == 0 ? real(fd) : -1;
}
