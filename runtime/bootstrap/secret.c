#include "bootstrap/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LEAST = 16, MOST = 1024 };

static int
refuse(const char *path, const char *found, struct blink_error *err)
{
	err->code = blinkInvalidArgument;
	snprintf(err->text, sizeof err->text, "BLINK_SECRET_FILE: %.200s: %s: want a file of %d to %d bytes, of this "
	    "user or root, that others can neither read nor write", path, found, (int)LEAST, (int)MOST);
	return err->code;
}

/* The number of bytes; -1: errno. */
static ssize_t
read_all(int fd, unsigned char *out, size_t room)
{
	size_t n = 0;
	for (ssize_t got = 1; got != 0 && n < room;) {
		got = read(fd, out + n, room - n);
		if (got < 0 && errno != EINTR)
			return -1;
		n += got > 0 ? (size_t)got : 0;
		got = got < 0 ? 1 : got;
	}
	return (ssize_t)n;
}

/* Of what is open: nobody can change the file for another one in between. */
static int
read_secret(int fd, const char *path, unsigned char out[MOST + 1], ssize_t *n, struct blink_error *err)
{
	char found[REASON_ROOM];
	struct stat file;
	if (fstat(fd, &file) != 0)
		return refuse(path, reason_of(errno, found), err);
	if (!S_ISREG(file.st_mode))
		return refuse(path, "not a regular file", err);
	if (file.st_uid != geteuid() && file.st_uid != 0) {
		snprintf(found, sizeof found, "of user %lu", (unsigned long)file.st_uid);
		return refuse(path, found, err);
	}
	if (file.st_mode & 077) {
		snprintf(found, sizeof found, "mode %03o", (unsigned)file.st_mode & 0777);
		return refuse(path, found, err);
	}
	*n = read_all(fd, out, MOST + 1);
	if (*n < 0)
		return refuse(path, reason_of(errno, found), err);
	if (*n < LEAST || *n > MOST)
		return refuse(path, *n > MOST ? "too long" : "too short", err);
	return blinkSuccess;
}

int
secret_add(struct id *id, const char *path, struct blink_error *err)
{
	unsigned char secret[MOST + 1];
	char reason[REASON_ROOM];
	struct hmac h;
	ssize_t n = 0;
	err->code = blinkSuccess;
	if (!path)
		return blinkSuccess;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return refuse(path, reason_of(errno, reason), err);
	int code = read_secret(fd, path, secret, &n, err);
	close(fd);
	if (code == blinkSuccess) {
		hmac_begin(&h, secret, (size_t)n);
		hmac_add(&h, id->secret, SECRET_BYTES);
		hmac_end(&h, id->secret);
	}
	explicit_bzero(secret, sizeof secret);
	return code;
}
