/* Names and texts of files and of the command line are untrusted: printed as they are, they could move the cursor of a
 * terminal, turn the order of a line, or begin a line of their own. This is the one place that knows which characters
 * do that: control characters, line separators, marks of direction, and what takes no space. */
#ifndef BLINK_PRINTABLE_H
#define BLINK_PRINTABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Length of well-formed UTF-8 at the start of data; `size` if all of it is. */
size_t utf8_valid(const char *data, size_t size);

/* Length of the character at the start of text, which is not empty, and its code point; -1: a byte that is not UTF-8.
 * size: CHARACTER_MOST where a NUL ends the text. */
enum { CHARACTER_MOST = 4 };
size_t character_at(const char *text, size_t size, int32_t *code);

/* May it be printed inside a line? */
bool is_printable(int32_t code);

/* The bytes at the start of a line that fit into so many columns, and the columns that they take. */
size_t bytes_of_columns(const char *line, int columns, int *used);

/* One line: ? for every byte of what may not be printed. Also breaks what GitHub would read as a command: :: at the
 * start of a line, and ##[ anywhere. */
void make_printable(char *line);

/* Printed so, inside a line. */
void print_name(FILE *to, const char *name);

#endif
