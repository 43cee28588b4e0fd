/* Messages for people: BLINK_DEBUG=NONE|WARN|INFO|TRACE, to standard error or to BLINK_DEBUG_FILE. */
#ifndef BLINK_DEBUG_H
#define BLINK_DEBUG_H

/* DEBUG_SETTING: a variable BLINK_* that does not do what was meant, which is said unless BLINK_DEBUG is NONE. */
enum debug_level { DEBUG_NONE, DEBUG_SETTING, DEBUG_WARN, DEBUG_INFO, DEBUG_TRACE };

/* Is that level asked for? Cheap: one load once the environment has been read. */
int debug_on(enum debug_level level);

/* One line, as NCCL writes them: "host:pid:tid [rank] BLINK INFO text". rank: -1: none. BLINK_DEBUG_FILE may hold %h
 * (host) and %p (process id); lines of several threads do not mix. Nothing unless debug_on(level). */
__attribute__((format(printf, 3, 4))) void debug_say(enum debug_level level, int rank, const char *format, ...);

#endif
