"""The command ``oar board``, which is ``python -m oar.board``."""

from __future__ import annotations

import argparse
import errno
import signal
import sys
import webbrowser
from pathlib import Path

from oar.board._server import serve
from oar.board._store import MOST_POINTS, Store

_EPILOG = """\
LOGDIR holds what oar.board.LogWriter, VisualDL, TensorBoard or PyTorch's SummaryWriter wrote. Each folder with log files in it is
a run. The page follows runs while they write.

Examples:
  oar board logs
  oar board logs --port 9000 --open
  oar board logs --host 0.0.0.0      for other machines too; anyone who reaches the port can read the logs
"""


def _seconds(text: str) -> float:
    value = float(text)
    if not 0.1 <= value <= 3600:
        raise argparse.ArgumentTypeError(f"{text} is not between 0.1 and 3600 seconds")
    return value


def _port(text: str) -> int:
    value = int(text)
    if not 0 <= value <= 65535:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 65535")
    return value


def _points(text: str) -> int:
    value = int(text)
    if not 100 <= value <= 1_000_000:
        raise argparse.ArgumentTypeError(f"{text} is not between 100 and 1000000")
    return value


def _arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("oar board", description="Shows the logs of training runs in the browser.", epilog=_EPILOG,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logdir", metavar="LOGDIR", type=Path, help="the folder of the logs")
    parser.add_argument("--port", type=_port, default=8040, metavar="N", help="the port, or the next one that is free (8040); 0 for any")
    parser.add_argument("--host", default="127.0.0.1", metavar="H", help="the address to listen at (127.0.0.1: this machine alone)")
    parser.add_argument("--reload", type=_seconds, default=5.0, metavar="S", help="seconds between looks at the files (5)")
    parser.add_argument("--points", type=_points, default=MOST_POINTS, metavar="N",
                        help=f"how many points of a scalar to keep ({MOST_POINTS}); longer series are thinned evenly")
    parser.add_argument("--allow-host", action="append", default=[], metavar="NAME", help="a further name by which browsers may ask")
    parser.add_argument("--open", action="store_true", help="open the page in the browser")
    return parser.parse_args(words)


def main(words: list[str] | None = None) -> int:
    """Serves until it is interrupted."""
    args = _arguments(sys.argv[1:] if words is None else words)
    if args.logdir.exists() and not args.logdir.is_dir():
        print(f"oar board: {args.logdir} is a file. Pass the folder that holds it.", file=sys.stderr)
        return 2
    store = Store(args.logdir, args.points)
    try:
        server = serve(store, args.host, args.port, args.reload, args.allow_host)
    except OSError as error:
        way_out = " Pass another --port." if error.errno in (errno.EADDRINUSE, errno.EACCES) else " Pass an address of this machine as --host."
        print(f"oar board: cannot listen at {args.host}, port {args.port}: {error.strerror or error}.{way_out}", file=sys.stderr)
        return 2
    shown = {"0.0.0.0": "localhost", "::": "localhost"}.get(args.host, args.host)
    address = f"http://{f'[{shown}]' if ':' in shown else shown}:{server.server_port}/"
    store.start(args.reload)
    print(f"oar board: {args.logdir} at {address} (Ctrl-C ends it)", flush=True)
    if not args.logdir.exists():
        print(f"oar board: {args.logdir} does not exist yet; the page shows it as soon as it does.", file=sys.stderr, flush=True)
    if args.open:
        webbrowser.open(address)

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        print("\roar board: stopped", flush=True)
    finally:
        server.server_close()
        store.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
