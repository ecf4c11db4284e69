"""`python -m greenroom` is the command `greenroom`."""

from greenroom.apps.cli import main

main(prog_name="greenroom")
