#include "support/settings.h"
#include "support/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_THREADS = 256 };

/* What is accepted, for messages; most fits what callers add up. */
#define MOST_MS (INT64_C(1000) * 86400 * 365)
#define MOST_BYTES (INT64_C(1) << 50)
#define MOST_NUMBER 1000000

struct unit {
	const char *name;
	int64_t value;
};

static const struct unit times[] = { { "", 1000 }, { "ms", 1 }, { "s", 1000 }, { "m", 60000 }, { "h", 3600000 },
	{ NULL, 0 } };
static const struct unit sizes[] = { { "", 1 }, { "K", 1 << 10 }, { "M", 1 << 20 }, { "G", 1 << 30 }, { "k", 1 << 10 },
	{ "m", 1 << 20 }, { "g", 1 << 30 }, { NULL, 0 } };
static const struct unit none[] = { { "", 1 }, { NULL, 0 } };

/* Digits and a unit; the value: lo to hi. */
static bool
parse(const char *text, const struct unit *unit, int64_t lo, int64_t hi, int64_t *out)
{
	int64_t n = 0;
	const char *at = text;
	for (; *at >= '0' && *at <= '9'; at++) {
		if (n > (INT64_MAX - 9) / 10)
			return false;
		n = 10 * n + (*at - '0');
	}
	while (unit->name && strcmp(unit->name, at) != 0)
		unit++;
	if (at == text || !unit->name || n > hi / unit->value || n * unit->value < lo)
		return false;
	*out = n * unit->value;
	return true;
}

static int
bad(struct blink_error *err, const char *variable, const char *value, const char *wanted)
{
	return set_error(err, blinkInvalidArgument, "%s: \"%.100s\": want %s", variable, value, wanted);
}

static int
read_TEXT(const char *variable, const char *value, const char **out, struct blink_error *err)
{
	(void)variable;
	*out = value;
	return err->code;
}

static int
read_MS(const char *variable, const char *value, int64_t *out, struct blink_error *err)
{
	return parse(value, times, 1, MOST_MS, out) ? blinkSuccess
	    : bad(err, variable, value, "a time from 1ms to a year, as 100ms, 90s, 10m or 2h");
}

static int
read_BYTES(const char *variable, const char *value, int64_t *out, struct blink_error *err)
{
	return parse(value, sizes, 0, MOST_BYTES, out) ? blinkSuccess
	    : bad(err, variable, value, "a number of bytes, as 8192, 64K, 4M or 1G");
}

static int
read_NUMBER(const char *variable, const char *value, int64_t *out, struct blink_error *err)
{
	return parse(value, none, 0, MOST_NUMBER, out) ? blinkSuccess
	    : bad(err, variable, value, "a number from 0 to 1000000");
}

static int
read_FLAG(const char *variable, const char *value, bool *out, struct blink_error *err)
{
	int64_t n;
	if (!parse(value, none, 0, 1, &n))
		return bad(err, variable, value, "0 or 1");
	*out = n;
	return blinkSuccess;
}

static int
read_AUTO(const char *variable, const char *value, int *out, struct blink_error *err)
{
	int64_t n;
	if (strcmp(value, "auto") == 0)
		*out = 0;
	else if (parse(value, none, 0, 1, &n))
		*out = n ? 1 : -1;
	else
		return bad(err, variable, value, "auto, 0 or 1");
	return blinkSuccess;
}

int
settings_read(struct settings *out, struct blink_error *err)
{
	const char *value;
	*out = (struct settings){
#define X(variable, member, how, preset, need, what) .member = preset,
		SETTING_LIST(X)
#undef X
	};
#define X(variable, member, how, preset, need, what)                                 \
	value = getenv(variable);                                              \
	if (value && *value && read_##how(variable, value, &out->member, err) != blinkSuccess) \
		return err->code;
	SETTING_LIST(X)
#undef X
	return err->code;
}

/* What is read elsewhere: of messages, the NCCL interface, the tuner plugin, the Python package. */
static const char *const others[] = { "BLINK_DEBUG", "BLINK_DEBUG_FILE", "BLINK_NCCL", "BLINK_COLLECTIVES",
	"BLINK_GPUS", "BLINK_LIBRARY" };

static bool
known(const char *name, size_t length)
{
#define X(variable, member, how, preset, need, what)                                 \
	if (strlen(variable) == length && memcmp(name, variable, length) == 0) \
		return true;
	SETTING_LIST(X)
#undef X
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (strlen(others[i]) == length && memcmp(name, others[i], length) == 0)
			return true;
	return false;
}

static size_t
add_name(char *out, size_t room, size_t n, const char *name, size_t length)
{
	if (n + length + 3 > room)
		return n;
	return n + (size_t)snprintf(out + n, room - n, "%s%.*s", n ? ", " : "", (int)length, name);
}

void
settings_unknown(char *out, size_t room)
{
	size_t n = 0;
	*out = '\0';
	for (char **at = environ; at && *at; at++) {
		size_t length = strcspn(*at, "=");
		if (strncmp(*at, "BLINK_", 6) == 0 && strspn(*at, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") == length
		    && !known(*at, length))
			n = add_name(out, room, n, *at, length);
	}
}

void
settings_that_need(enum setting_need asked, char *out, size_t room)
{
	const char *value;
	size_t n = 0;
	*out = '\0';
#define X(variable, member, how, preset, need, what)                           \
	value = NEEDS_##need == asked ? getenv(variable) : NULL;               \
	if (value && *value)                                                   \
		n = add_name(out, room, n, variable, strlen(variable));
	SETTING_LIST(X)
#undef X
}

const char *
setting_need_text(enum setting_need need)
{
	static const char *const texts[] = {
#define X(name, text) [NEEDS_##name] = text,
		SETTING_NEED_LIST(X)
#undef X
	};
	return texts[need];
}
