"""Seeded random numbers that are the same in every version of Python (Knuth's MMIX generator, high bits)."""


class Lcg:
    def __init__(self, seed):
        self.state = seed & (2**64 - 1)
        for _ in range(4):  # neighbouring seeds start apart
            self.below(2)

    def below(self, n):
        """0 .. n-1; its bias, n / 2**32, is of no matter to a test."""
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) & (2**64 - 1)
        return (self.state >> 32) % n

    def between(self, low, high):
        return low + self.below(high - low + 1)

    def choice(self, items):
        return items[self.below(len(items))]

    def shuffled(self, items):
        out = list(items)
        for i in range(len(out) - 1, 0, -1):
            j = self.below(i + 1)
            out[i], out[j] = out[j], out[i]
        return out
