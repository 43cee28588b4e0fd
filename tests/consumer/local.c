/* A program that has a cJSON of its own, and loads libblink for itself alone: neither sees the other's. */
#include <blink.h>

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static int called;

/* Visible to libraries, as in a program that links cJSON and exports its symbols. */
void *cJSON_Parse(const char *text);
void *cJSON_ParseWithLength(const char *text, size_t length);

void *
cJSON_Parse(const char *text)
{
	called++;
	return (void *)text;
}

void *
cJSON_ParseWithLength(const char *text, size_t length)
{
	called++;
	return length ? (void *)text : NULL;
}

static void *
find(void *library, const char *name)
{
	void *symbol = dlsym(library, name);
	if (!symbol)
		printf("%s: %s\n", name, dlerror());
	return symbol;
}

int
main(int argc, char **argv)
{
	blinkSchedule_t sched;
	blinkError_t error = { "" };
	blinkResult_t (*load)(const char *, blinkSchedule_t *, blinkError_t *);
	blinkResult_t (*destroy)(blinkSchedule_t);
	void *library = argc == 3 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL, *symbol;
	if (!library) {
		printf("usage: local LIBRARY SCHEDULE: %s\n", argc == 3 ? dlerror() : "");
		return 2;
	}
	symbol = find(library, "blinkScheduleLoadData");
	memcpy(&load, &symbol, sizeof load);
	symbol = find(library, "blinkScheduleDestroy");
	memcpy(&destroy, &symbol, sizeof destroy);
	if (!load || !destroy)
		return 1;
	blinkResult_t result = load(argv[2], &sched, &error);
	if (result != blinkSuccess || called) {
		printf("%d: %s; %d calls of the program's cJSON\n", (int)result, error.text, called);
		return 1;
	}
	destroy(sched);
	if (dlsym(RTLD_DEFAULT, "blinkVersion")) {
		printf("libblink's symbols are global\n");
		return 1;
	}
	return dlclose(library);
}
