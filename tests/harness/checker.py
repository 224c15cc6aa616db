"""The program of a checker process as the tests need it, at their own priority and small; all else as in production.

On a busy machine, the lowest priority would get next to nothing, and a search would not get far enough in its time to
take as much memory as a process may keep.
"""

from solisync.checking import checker

KEPT_BYTES = 32 * 2**20

if __name__ == "__main__":
    checker.KEPT_BYTES = KEPT_BYTES
    checker.main(priority=0)
