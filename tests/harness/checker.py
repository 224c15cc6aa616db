"""The program of a checker process as the tests need it: at their own priority, all else as in production.

On a busy machine, the lowest priority would get next to nothing.
"""

from solisync.checking.checker import main

if __name__ == "__main__":
    main(priority=0)
