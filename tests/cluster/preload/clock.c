/*
 * Preloaded into a daemon, this moves its real-time clock by the seconds in the file CLOCK_FILE, also while it runs. It takes no lock
 * and no memory, for daemons that fork and that read the clock in signal handlers.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const int64_t none;
static const volatile int64_t *by = &none;

__attribute__((constructor)) static void map_file(void)
{
	const char *path = getenv("CLOCK_FILE");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *at = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *by, PROT_READ, MAP_SHARED, fd, 0);

	if (at != MAP_FAILED)
		by = at;
	if (fd >= 0)
		close(fd);
}

int clock_gettime(clockid_t id, struct timespec *t)
{
	int r = syscall(SYS_clock_gettime, id, t);

	if (r == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
		t->tv_sec += *by;
	return r;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone)
{
	struct timespec now;

	(void)zone;
	clock_gettime(CLOCK_REALTIME, &now);
	t->tv_sec = now.tv_sec;
	t->tv_usec = now.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *out)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (out)
		*out = now.tv_sec;
	return now.tv_sec;
}

/* A deadline by the moved clock, as the kernel's clock has it. */
int pthread_cond_timedwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex, const struct timespec *restrict until)
{
	struct timespec real = *until;

	real.tv_sec -= *by;
	return pthread_cond_clockwait(cond, mutex, CLOCK_REALTIME, &real);
}
