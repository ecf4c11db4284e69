"""The demo: three calls to a clinic, in one file that is meant to be copied."""

from pathlib import Path

SOURCE = Path(__file__).with_name("clinic.py")

AS_DESIGNED = {"chest-pain": "passed", "headache": "failed", "routine-appointment": "passed"}
"""How the cases of `clinic.py` end: one fails on purpose, to show what that looks like."""
