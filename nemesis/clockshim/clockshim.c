/* A wall clock of its own for one process: LD_PRELOAD this, name the control file in
 * LOCKHAVOC_CLOCK, and write an offset or a rate there at any time (harness/core/skew.py).
 *
 * CLOCK_MONOTONIC is never touched: it is the clock by which the harness judges.
 * The kernel is asked directly. Looking up libc's own functions with dlsym() would allocate, and
 * an allocator that reads the clock while it starts would hang (jemalloc under libfaketime does).
 *
 * Traps: what reads the vDSO without libc (Go) is not reached; nor is a static binary.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000LL

struct page { /* all in the order of harness/core/skew.py */
    int64_t generation; /* odd while it is being written */
    int64_t base_ns;    /* CLOCK_MONOTONIC at which the offset holds */
    int64_t offset_ns;
    int64_t rate_ppm;   /* grows by so many ns per ms from then on */
    int64_t reads;      /* how often a skewed clock was told; written here, read there */
};

static struct page *page;

__attribute__((constructor)) static void open_page(void) {
    const char *name = getenv("LOCKHAVOC_CLOCK");
    if (!name) return;
    int file = open(name, O_RDWR | O_CLOEXEC);
    if (file < 0) return;
    void *mapped = mmap(0, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (mapped != MAP_FAILED) page = mapped;
}

static int ask(clockid_t clock, struct timespec *now) {
    return (int)syscall(SYS_clock_gettime, clock, now);
}

static int64_t offset_ns(void) {
    struct page seen;
    struct timespec mono;
    if (!page) return 0;
    do { /* a writer needs less than a microsecond */
        seen.generation = __atomic_load_n(&page->generation, __ATOMIC_ACQUIRE);
        seen.base_ns = __atomic_load_n(&page->base_ns, __ATOMIC_RELAXED);
        seen.offset_ns = __atomic_load_n(&page->offset_ns, __ATOMIC_RELAXED);
        seen.rate_ppm = __atomic_load_n(&page->rate_ppm, __ATOMIC_RELAXED);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
    } while (seen.generation & 1 ||
             seen.generation != __atomic_load_n(&page->generation, __ATOMIC_RELAXED));
    if (!seen.offset_ns && !seen.rate_ppm) return 0;
    __atomic_fetch_add(&page->reads, 1, __ATOMIC_RELAXED);
    if (!seen.rate_ppm || ask(CLOCK_MONOTONIC, &mono)) return seen.offset_ns;
    int64_t since_ns = mono.tv_sec * NS_PER_S + mono.tv_nsec - seen.base_ns;
    return seen.offset_ns + since_ns / 1000000 * seen.rate_ppm;
}

static int wall(clockid_t clock, struct timespec *now) {
    int failed = ask(clock, now);
    if (failed) return failed;
    int64_t skewed_ns = now->tv_sec * NS_PER_S + now->tv_nsec + offset_ns();
    now->tv_sec = skewed_ns / NS_PER_S;
    now->tv_nsec = skewed_ns % NS_PER_S;
    return 0;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) return wall(clock, now);
    return ask(clock, now);
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec exact;
    (void)zone;
    int failed = wall(CLOCK_REALTIME, &exact);
    if (failed) return failed;
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *into) {
    struct timespec now;
    if (wall(CLOCK_REALTIME, &now)) return (time_t)-1;
    if (into) *into = now.tv_sec;
    return now.tv_sec;
}
