/* The name that somebody may have meant. */
#ifndef BLINK_NEAR_H
#define BLINK_NEAR_H

/* Characters inserted, removed, replaced or swapped with the next, to get from one to the other; capital letters are
 * small ones, _ is -. Names longer than 64 bytes are as far as they can be. Cost: the product of the lengths. */
int near_distance(const char *a, const char *b);

/* The nearest of n names that are within a third of the length of `text`, and at least within 1: those at the least
 * distance, in their order, `most` at most. Returns how many. */
int near_names(const char *text, const char *const *name, int n, const char **found, int most);

#endif
