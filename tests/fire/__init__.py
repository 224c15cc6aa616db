"""The fire suite: each promise of solisync under attack, with the measured figure.

`make fire` (pytest --fire) runs all of it in its long form, and prints every figure again at the end. `make test`
runs only the tests marked `short`, in a short form; tests that take more than three seconds even so are only in
`make fire`.
"""
