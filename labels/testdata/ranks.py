"""Kruskal-Wallis and Dunn by their definitions, to hold labels.CompareGroups against.

Reads a JSON list of tables from stdin, each a list of groups of numbers, and writes for each [H, p, epsilon squared,
z and two-sided p of every pair of groups with values]. Nothing but the standard library.
"""
import json
import math
import sys
from collections import Counter
from fractions import Fraction


def survival(x, df):
    """P(chi-squared with df degrees of freedom > x), in closed form."""
    if df % 2 == 0:
        return math.exp(-x / 2) * math.fsum((x / 2) ** i / math.factorial(i) for i in range(df // 2))
    return math.erfc(math.sqrt(x / 2)) + math.exp(-x / 2) * math.fsum(
        (x / 2) ** (i - 0.5) / math.gamma(i + 0.5) for i in range(1, (df + 1) // 2))


def test(groups):
    groups = [g for g in groups if g]
    pooled = sorted(v for g in groups for v in g)
    n = len(pooled)
    # The rank of a value: how many are smaller, and half of one more than how many are equal.
    rank = {v: Fraction(2 * sum(w < v for w in pooled) + pooled.count(v) + 1, 2) for v in set(pooled)}
    sums = [sum(rank[v] for v in g) for g in groups]
    ties = sum(t ** 3 - t for t in Counter(pooled).values())
    h = Fraction(12, n * (n + 1)) * sum(r * r / len(g) for r, g in zip(sums, groups)) - 3 * (n + 1)
    h /= 1 - Fraction(ties, n ** 3 - n)
    variance = Fraction(n * (n + 1), 12) - Fraction(ties, 12 * (n - 1))
    out = [float(h), survival(float(h), len(groups) - 1), float(h * (n + 1) / (n * n - 1))]
    for i, a in enumerate(groups):
        for j in range(i + 1, len(groups)):
            b = groups[j]
            spread = math.sqrt(variance * (Fraction(1, len(a)) + Fraction(1, len(b))))
            z = float(sums[i] / len(a) - sums[j] / len(b)) / spread
            out += [z, math.erfc(abs(z) / math.sqrt(2))]
    return out


json.dump([test(groups) for groups in json.load(sys.stdin)], sys.stdout)
