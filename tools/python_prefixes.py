"""Prints the prefixes that pip installs libraries and headers to, for CMake: a list separated by semicolons.

That is the environment of the Python that runs this and, in an isolated build (`pip install .`), the folder for what
the build requires: pip puts only its `site-packages` on the path, so the prefix is found from there.
"""

from __future__ import annotations

import sys
from pathlib import Path

sites = [Path(entry) for entry in sys.path if Path(entry).name in ("site-packages", "dist-packages")]
# <prefix>/lib/python3.x/site-packages
found = [str(site.parents[2]) for site in sites if len(site.parents) > 2] + [sys.prefix]
print(";".join(dict.fromkeys(found)))
