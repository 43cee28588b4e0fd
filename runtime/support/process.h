/* Which process this is. */
#ifndef BLINK_PROCESS_H
#define BLINK_PROCESS_H

#include <sys/types.h>

/* As getpid: another number in a forked child. Without a system call, which every call of a communicator would pay,
 * where the kernel clears memory in children (Linux 4.14). */
pid_t process_id(void);

#endif
