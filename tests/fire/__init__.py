"""The fire suite: each promise of solisync under attack, with the figure it was kept by.

`make fire` (pytest --fire) runs all of it in its long form, and prints every figure again at the end. `make test` runs
only the tests marked `short`, in a short form; what takes more than three seconds even so is in `make fire` alone.
"""
