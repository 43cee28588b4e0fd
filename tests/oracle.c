/* Run an oracle in the Python process that listens at $ORACLE_SOCKET (tests/warm.py), as if it were started here:
 *
 *	oracle SCRIPT [ARGUMENT...]
 *
 * The script gets our arguments, environment, working directory and standard streams; its exit status is ours. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { STREAMS = 3, N_FDS = STREAMS + 1 };

static void
die(const char *what)
{
	fprintf(stderr, "oracle: %s: %s\n", what, strerror(errno));
	exit(125);
}

static void
append(char **text, size_t *used, const char *words[])
{
	for (; *words; words++) {
		size_t size = strlen(*words) + 1;
		*text = realloc(*text, *used + size);
		if (!*text)
			die("request");
		memcpy(*text + *used, *words, size);
		*used += size;
	}
}

static int
server(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const char *path = getenv("ORACLE_SOCKET");
	if (!path || strlen(path) >= sizeof(address.sun_path)) {
		errno = EINVAL;
		die("ORACLE_SOCKET");
	}
	strcpy(address.sun_path, path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0)
		die(path);
	return fd;
}

/* The sizes of both lists, and with them the descriptors. */
static void
send_head(int fd, const size_t head[2])
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(N_FDS * sizeof(int))];
	} control = {0};
	struct iovec data = {(void *)head, 2 * sizeof(*head)};
	struct msghdr message = {
		.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
	};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	int fds[N_FDS] = {0, 1, 2, open(".", O_PATH | O_DIRECTORY | O_CLOEXEC)};

	for (int i = 0; i < STREAMS; i++)
		if (fcntl(fds[i], F_GETFD) < 0)
			fds[i] = open("/dev/null", O_RDWR | O_CLOEXEC);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(fds));
	memcpy(CMSG_DATA(header), fds, sizeof(fds));
	if (sendmsg(fd, &message, MSG_NOSIGNAL) != (ssize_t)(2 * sizeof(*head)))
		die("send");
}

int
main(int argc, char *argv[])
{
	size_t head[2] = {0}, used = 0, sent = 0;
	char *text = NULL;
	unsigned char status;
	int fd = server();

	if (argc < 2)
		return 2;
	append(&text, &used, (const char **)argv + 1);
	head[0] = used;
	append(&text, &used, (const char **)environ);
	head[1] = used - head[0];
	send_head(fd, head);
	while (sent < used) {
		ssize_t n = send(fd, text + sent, used - sent, MSG_NOSIGNAL);
		if (n < 0)
			die("send");
		sent += n;
	}
	free(text);
	if (read(fd, &status, 1) != 1) {
		errno = ECONNRESET;
		die(argv[1]);
	}
	return status;
}
