"""The program of a checker process under test: normal priority, and less time and memory for a search.

On a busy machine, the lowest priority would get next to no processor time. Everything else is as in production.
"""

from solisync.checking import checker

SEARCH_SECONDS = 1.9
KEPT_BYTES = 28 * 2**20  # less than a search needs in this time

if __name__ == "__main__":
    checker.SEARCH_SECONDS, checker.KEPT_BYTES = SEARCH_SECONDS, KEPT_BYTES
    checker.main(priority=0)
