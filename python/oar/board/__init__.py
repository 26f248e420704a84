"""The dashboard: ``LogWriter`` writes what a training program logs, and ``oar board LOGDIR`` shows it in the browser.

    from oar.board import LogWriter

    with LogWriter("logs/first") as writer:
        writer.add_scalar("train/loss", 0.5, step=1)
"""

from oar.board.writer import LogWriter

__all__ = ["LogWriter"]
