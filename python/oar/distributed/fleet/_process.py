"""The object that stands for the processes of this program."""

from oar.distributed.fleet.fleet import Fleet

__all__ = ["fleet"]

fleet = Fleet()
