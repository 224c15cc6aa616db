"""`python -m solisync`: the `solisync` command, run by the Python that is named."""

from .commands.start import main

main()
