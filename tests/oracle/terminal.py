#!/usr/bin/env python3
"""Run a command whose standard error is a terminal; standard output goes nowhere.

usage: terminal.py FILE COMMAND...     FILE is what the terminal gets; the exit status is the command's
       terminal.py --widths N[,MS:N]... COMMAND...
            The terminal has N columns, and after MS milliseconds another number of them. Prints what is wrong with the
            lines that come and go: those that are as long as the terminal is wide, or longer; and at the end what is on
            the screen, as JSON: {"lines": shown, "longest": columns, "screen": [rows]}.
"""
import fcntl
import json
import os
import pty
import re
import select
import struct
import sys
import termios
import time
import unicodedata


def run(command, take, columns=None, later=()):
    """Run it; `take` gets each piece of output, and the width that the terminal has from then on."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if columns:
            fcntl.ioctl(2, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        os.execv(command[0], command)
    start, later = time.monotonic(), list(later)
    while True:
        if later and time.monotonic() - start >= later[0][0] / 1000:
            # What is still to be read was written before.
            while select.select([terminal], [], [], 0)[0]:
                take(os.read(terminal, 65536), None)
            columns = later.pop(0)[1]
            fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
            take(b"", columns)
        if not select.select([terminal], [], [], 0.01)[0]:
            continue
        try:
            data = os.read(terminal, 65536)
        except OSError:     # Linux, once the other end is closed
            break
        if not data:
            break
        take(data, None)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def width(char):
    return 0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1


class Screen:
    """A terminal that breaks a line anew when its width changes, as most do. A line is a list of characters; `at` is
    the
    cursor, in the line."""

    def __init__(self, columns):
        self.columns, self.lines, self.line, self.at = columns, [[]], 0, 0

    def rows(self, line):
        """The first character of each of its rows."""
        first, used = [0], 0
        for i, char in enumerate(line):
            if used + width(char) > self.columns:
                first.append(i)
                used = 0
            used += width(char)
        return first

    def take(self, text):
        for part in re.findall(r"\x1b\[[0-9;]*[A-Za-z]|.", text, re.S):
            line = self.lines[self.line]
            if part == "\r":
                self.at = max(i for i in self.rows(line) if i <= self.at)
            elif part == "\n":
                self.line, self.at = self.line + 1, 0
                if self.line == len(self.lines):
                    self.lines.append([])
            elif part == "\x1b[J":
                del line[self.at:], self.lines[self.line + 1:]
            elif part == "\x1b[K":
                end = min([i for i in self.rows(line) if i > self.at], default=len(line))
                line[self.at:end] = [] if end == len(line) else " " * (end - self.at)
            elif part.startswith("\x1b"):
                raise ValueError(f"{part!r}: not a sequence that this terminal knows")
            else:
                line[self.at:self.at + 1] = [part]
                self.at += 1

    def text(self):
        found = []
        for line in self.lines:
            first = self.rows(line) + [len(line)]
            found += ["".join(line[a:b]) for a, b in zip(first, first[1:])]
        while found and not found[-1].strip():
            found.pop()
        return found


def watch(widths, command):
    first, *later = widths.split(",")
    later = [tuple(map(int, item.split(":"))) for item in later]
    screen, state, bad = Screen(int(first)), {"lines": 0, "longest": 0}, []

    wide = [screen.columns]     # a line that is on its way when the width changes has the one before

    def take(data, columns):
        if columns:
            wide[0] = screen.columns
            screen.columns = columns
        text = data.decode("utf-8", "replace")
        for line in re.split(r"\x1b\[[0-9;]*[A-Za-z]|[\r\n]", text):
            if not re.search(r", [0-9.]+ s|\[[#.]+\]", line) or line.startswith("budget"):
                continue
            size = sum(map(width, line))
            state["lines"] += 1
            state["longest"] = max(state["longest"], size)
            if size >= max(wide[0], screen.columns):
                bad.append(f"{size} columns of {screen.columns}: {line}")
            wide[0] = 0
        screen.take(text)

    code = run(command, take, int(first), later)
    for line in bad:
        print(line)
    print(json.dumps({**state, "screen": screen.text()}))
    return code


def record(path, command):
    with open(path, "wb") as seen:
        return run(command, lambda data, _: seen.write(data))


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    if sys.argv[1] == "--widths":
        sys.exit(watch(sys.argv[2], sys.argv[3:]))
    sys.exit(record(sys.argv[1], sys.argv[2:]))
