"""Tools for people who work with Oar: programs that are run with ``python -m oar.tools.<name>``."""
