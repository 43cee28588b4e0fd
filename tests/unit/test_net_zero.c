/* Zero copy of the TCP net (transport/tcp_zero.c), over loopback, where the kernel copies after all and says so: what
 * is sent arrives in each mode, what the kernel says is counted, and a kernel that refuses does no harm. Prints TAP.
 * test_net_zero [SEED]. */
#include "net_ends.h"
#include "transport/tcp_inside.h"

#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <errno.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { MESSAGES = 120, MOST = 2 << 20 };

/* ---- numbers of the kernel ---- */

static void
test_range(void)
{
	struct tcp_zero z = { .begun = 10 };
	ok(tcp_zero_range(&z, 0, 0) && z.ended == 1 && tcp_zero_range(&z, 1, 4) && z.ended == 5,
	    "one call, and several");
	ok(tcp_zero_range(&z, 8, 9) && tcp_zero_range(&z, 5, 7) && z.ended == z.begun, "in another order");
	ok(!tcp_zero_range(&z, 9, 9) && z.ended == 10, "more than have begun");
	z = (struct tcp_zero){ .begun = 3, .ended = UINT32_MAX - 1 };
	ok(tcp_zero_range(&z, UINT32_MAX - 1, 1) && z.ended == 2 && z.begun != z.ended, "past the largest number");
	ok(tcp_zero_range(&z, 2, 2) && z.ended == z.begun, "and after it");
	z = (struct tcp_zero){ .begun = 3 };
	ok(!tcp_zero_range(&z, 3, 2) && !tcp_zero_range(&z, 2, 0) && z.ended == 0,
	    "a range of none, and the wrong way");
}

/* Memory is not given back while the kernel may read it. */
static void
test_lent(void)
{
	struct tcp_out out = { .fd = -1, .zero = { .begun = 1 } };
	ok(tcp_zero_lent(&out), "the kernel does not say what is left");
	out.zero.ended = 1;
	ok(!tcp_zero_lent(&out), "nothing is left");
}

/* ---- modes ---- */

/* Of the connections from an end to a peer. */
struct sum {
	uint32_t begun, ended;
	int on, off, most;
};

static struct sum
sum_of(const struct end *e, int to)
{
	struct tcp *t = e->net;
	struct sum s = { 0 };
	for (int k = 0; k < TCP_WAYS; k++) {
		struct tcp_out *out = &t->peer[to].out[k];
		pthread_mutex_lock(&out->lock);
		s.begun += out->zero.begun;
		s.ended += out->zero.ended;
		s.on += out->zero.state == ZERO_ON;
		s.off += out->zero.state == ZERO_OFF;
		s.most = (int)out->zero.begun > s.most ? (int)out->zero.begun : s.most;
		pthread_mutex_unlock(&out->lock);
	}
	return s;
}

/* The kernel has let go of everything. */
static bool
settled(const struct end *e, int to)
{
	struct sum s = sum_of(e, to);
	for (int64_t until = now() + 10 * SECOND; s.begun != s.ended && now() < until; s = sum_of(e, to))
		pause_ms(1);
	return s.begun == s.ended;
}

/* Both ends send messages of many sizes to each other; all arrive. *s: of the first. */
static bool
exchange(int family, struct sum *s)
{
	struct end e[2];
	char *payload[2 * MESSAGES] = { 0 };
	uint64_t state = seed, flag[2][LANES] = { 0 };
	bool good = open_ends(e, 2, family, 20000);
	for (int i = 0; i < 2 * MESSAGES && good; i++) {
		uint64_t r = random64(&state), lane = r % LANES, most = r % 8 == 0 ? MOST : 200000;
		uint64_t bytes = random64(&state) % most;
		good = send_one(&e[i % 2], 1 - i % 2, (uint32_t)lane, ++flag[i % 2][lane], bytes, &payload[i])
		    == blinkSuccess;
	}
	for (int r = 0; r < 2; r++)
		good = good && await(&e[r], &e[r].arrived, MESSAGES, 60000) && settled(&e[r], 1 - r) && !e[r].wrong
		    && !e[r].broken[1 - r];
	good = told(e, 2, good);
	*s = sum_of(&e[0], 1);
	for (int r = 0; r < 2; r++)
		close_end(&e[r]);
	for (int i = 0; i < 2 * MESSAGES; i++)
		free(payload[i]);
	printf("# %u calls without a copy\n", s->begun);
	return good;
}

/* Is it here? Not in every sandbox; and a user may need some memory that can be locked. */
static bool
is_here(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
	struct rlimit locked = { 0 };
	bool good = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &on, sizeof on) == 0
	    && getrlimit(RLIMIT_MEMLOCK, &locked) == 0 && (geteuid() == 0 || locked.rlim_cur >= 64 << 20);
	if (fd >= 0)
		close(fd);
	return good;
}

static void
test_modes(void)
{
	struct sum s;
	zero_copy = -1;
	ok(exchange(AF_INET, &s) && s.begun == 0 && s.off == TCP_WAYS, "never");
	zero_copy = 0;
	ok(exchange(AF_INET, &s) && s.begun > 0 && s.most == 1 && s.off == TCP_WAYS,
	    "where the kernel copies each connection tries once");
	zero_copy = 1;
	ok(exchange(AF_INET, &s) && s.begun > MESSAGES / 4 && s.on == TCP_LONG, "wherever it can be");
}

/* ---- a kernel that refuses ---- */

/* In a process of its own, whose status is 0 if all is as it should be. */
static bool
in_child(bool (*body)(void))
{
	int status = -1;
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		alarm(60);
		_exit(!body());
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

/* A page may be locked, whoever runs this. */
static bool
lock_little(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { { 0 }, { 0 } };
	struct rlimit page = { 4096, 4096 };
	return setrlimit(RLIMIT_MEMLOCK, &page) == 0 && syscall(SYS_capset, &header, none) == 0;
}

static bool
without_locked_memory(void)
{
	struct sum s;
	zero_copy = 0;
	bool good = lock_little() && exchange(AF_INET, &s) && s.begun == 0;
	zero_copy = 1;
	return good && exchange(AF_INET, &s) && s.begun == 0 && s.on == TCP_LONG;
}

/* setsockopt does not know the option. */
static bool
without_kernel(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_setsockopt, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SO_ZEROCOPY, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOPROTOOPT),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof filter / sizeof *filter, filter };
	struct sum s;
	zero_copy = 1;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
	    && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0
	    && exchange(AF_INET, &s) && s.begun == 0 && s.off == TCP_WAYS;
}

int
main(int argc, char **argv)
{
	begin(argc, argv);
	ok(in_child(without_locked_memory), "no memory may be locked: all is copied");
	ok(in_child(without_kernel), "a kernel without zero copy");
	test_range();
	test_lent();
	if (is_here())
		test_modes();
	else
		printf("skip modes: no zero copy here, or by ulimit -l\n");
	return finish();
}
