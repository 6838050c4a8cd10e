/* Preloaded: a process whose wall clock is as many seconds off as the file CLOCK_OFFSET_FILE says.
   What tells the time of day is replaced, and what waits for a time of day. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>

static int real_clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    return real(clock, now);
}

/* Read at most every 50 ms: the time is asked for often. */
static long offset(void) {
    static __thread long seconds, read_at;
    struct timespec now;
    real_clock_gettime(CLOCK_MONOTONIC, &now);
    long moment = now.tv_sec * 1000 + now.tv_nsec / 1000000;
    if (moment - read_at < 50) return seconds;
    read_at = moment;
    const char *path = getenv("CLOCK_OFFSET_FILE");
    FILE *file = path ? fopen(path, "r") : NULL;
    long found;
    if (file) {
        if (fscanf(file, "%ld", &found) == 1) seconds = found;
        fclose(file);
    }
    return seconds;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = real_clock_gettime(clock, now);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += offset();
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone;
    struct timespec time;
    int result = clock_gettime(CLOCK_REALTIME, &time);
    now->tv_sec = time.tv_sec;
    now->tv_usec = time.tv_nsec / 1000;
    return result;
}

time_t time(time_t *now) {
    struct timespec found;
    clock_gettime(CLOCK_REALTIME, &found);
    if (now) *now = found.tv_sec;
    return found.tv_sec;
}

/* A time of day as the machine tells it; by the other clock no machine has run for 30 years. */
static struct timespec real_moment(const struct timespec *until) {
    struct timespec moment = *until;
    if (moment.tv_sec > 1000000000) moment.tv_sec -= offset();
    return moment;
}

int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict until) {
    static int (*real)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    if (!real)
        real = (int (*)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *))dlsym(
            RTLD_NEXT, "pthread_cond_timedwait");
    struct timespec moment = real_moment(until);
    return real(condition, mutex, &moment);
}

int cnd_timedwait(cnd_t *restrict condition, mtx_t *restrict mutex,
                  const struct timespec *restrict until) {
    static int (*real)(cnd_t *, mtx_t *, const struct timespec *);
    if (!real)
        real = (int (*)(cnd_t *, mtx_t *, const struct timespec *))dlsym(RTLD_NEXT,
                                                                         "cnd_timedwait");
    struct timespec moment = real_moment(until);
    return real(condition, mutex, &moment);
}
