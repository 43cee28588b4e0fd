#include "bootstrap/interface.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

bool
interface_chosen(const char *list, const char *name)
{
	bool none_of = *list == '^', exactly;
	list += none_of;
	exactly = *list == '=';
	list += exactly;
	while (*list) {
		size_t length = strcspn(list, ",");
		if (length && strncmp(name, list, length) == 0 && (!exactly || name[length] == 0))
			return !none_of;
		list += length;
		list += *list == ',';
	}
	return none_of;
}

/* 0: IPv4; 1: IPv6; 2: of this link alone; 3: cannot be used */
static int
kind_of(const struct ifaddrs *i)
{
	const struct sockaddr *a = i->ifa_addr;
	enum { WANT = IFF_UP | IFF_RUNNING };
	if (!a || (i->ifa_flags & WANT) != WANT)
		return 3;
	if (a->sa_family != AF_INET6)
		return a->sa_family == AF_INET ? 0 : 3;
	return IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr) ? 2 : 1;
}

/* The best kind of address of the interfaces that are chosen; the first of that kind. */
static const struct ifaddrs *
first_chosen(const struct ifaddrs *all, const char *list)
{
	const struct ifaddrs *best = NULL;
	for (const struct ifaddrs *i = all; i; i = i->ifa_next)
		if (kind_of(i) < (best ? kind_of(best) : 3) && interface_chosen(list, i->ifa_name))
			best = i;
	return best;
}

static void
none(const struct ifaddrs *all, const char *list, struct blink_error *err)
{
	char names[256] = "";
	size_t at = 0;
	const char *before = "";
	for (const struct ifaddrs *i = all; i && at < sizeof names - IF_NAMESIZE - 2; i = i->ifa_next)
		if (kind_of(i) == 0 && strcmp(before, i->ifa_name) != 0) {
			before = i->ifa_name;
			at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", at ? ", " : "", before);
		}
	err->code = blinkInvalidArgument;
	snprintf(err->text, sizeof err->text, "BLINK_SOCKET_IFNAME: %.100s: no interface of that name is up and has an "
	    "address: want one of: %s", list, names);
}

int
interface_find(const char *list, unsigned char address[ADDRESS_BYTES], char name[16], struct blink_error *err)
{
	struct ifaddrs *all;
	if (getifaddrs(&all)) {
		char reason[REASON_ROOM];
		err->code = blinkSystemError;
		snprintf(err->text, sizeof err->text, "network interfaces: %s", reason_of(errno, reason));
		return err->code;
	}
	bool any = !list || !*list;
	const struct ifaddrs *found = first_chosen(all, any ? "^docker,lo" : list);
	if (!found && any)
		found = first_chosen(all, "^");
	memset(address, 0, ADDRESS_BYTES);
	memset(name, 0, 16);
	err->code = blinkSuccess;
	if (found) {
		memcpy(address, found->ifa_addr, found->ifa_addr->sa_family == AF_INET ? sizeof(struct sockaddr_in)
		    : sizeof(struct sockaddr_in6));
		snprintf(name, 16, "%s", found->ifa_name);
	} else {
		none(all, any ? "lo" : list, err);
	}
	freeifaddrs(all);
	return err->code;
}
