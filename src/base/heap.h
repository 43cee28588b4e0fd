/* Binary heaps, in arrays of the caller. */
#ifndef BLINK_HEAP_H
#define BLINK_HEAP_H

/* Defines name(of, heap, n, at, one): `one` takes the place `at` of a heap of n items that is in order but for it, and
 * goes up or down from there to where it belongs. So an item is added at heap[n++]; the first, heap[0], is taken by
 * putting heap[--n] in its place; and one whose order has changed is put where it is.
 *
 * before(of, a, b): is a nearer the top than b? moved(of, item, at): the item is at this place now. Both may be
 * macros. */
#define HEAP(name, Of, Item, before, moved) \
	static inline void name(Of *of, Item *heap, int n, int at, Item one) \
	{ \
		(void)of; \
		for (; at > 0 && before(of, one, heap[(at - 1) / 2]); at = (at - 1) / 2) { \
			heap[at] = heap[(at - 1) / 2]; \
			moved(of, heap[at], at); \
		} \
		for (int next; (next = 2 * at + 1) < n; at = next) { \
			next += next + 1 < n && before(of, heap[next + 1], heap[next]); \
			if (!before(of, heap[next], one)) \
				break; \
			heap[at] = heap[next]; \
			moved(of, heap[at], at); \
		} \
		heap[at] = one; \
		moved(of, heap[at], at); \
	}

/* For items that nothing looks for. */
#define HEAP_UNMOVED(of, item, at)

#endif
