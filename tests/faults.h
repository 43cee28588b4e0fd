/* System calls that fail in a process, as tests/faults.c has them in the place of the C library's. */
#ifndef TESTS_FAULTS_H
#define TESTS_FAULTS_H

#include <stdatomic.h>
#include <stdbool.h>

enum { FAULTS_ERRORS = 6, FAULTS_SITES = 96 };

/* A function that can fail. Its calls are those that the chosen library makes. */
struct faults_site {
	const char *name;
	int errors[FAULTS_ERRORS];	/* that it may plausibly fail with; FAULTS_SHORT: a smaller count; 0: no more */
	atomic_long calls, failed;	/* since faults_begin */
	bool chosen, also;
} __attribute__((aligned(64)));

enum { FAULTS_SHORT = -1, FAULTS_DIES = -2 };	/* DIES: the process is killed in it */

/* Fail call number `at` of that function, counted from 0, and those that follow if `on`; only calls by code of the
 * library whose file name begins so. at < 0: none of it. All calls of `also` fail, too; NULL: nothing else does. */
struct faults_plan {
	const char *library, *name, *also;
	long at;
	int error, also_error;
	bool on;
};

int faults_sites(void);
struct faults_site *faults_site(int i);
void faults_begin(const struct faults_plan *plan);

/* Nothing fails from now on. */
void faults_end(void);

#endif
