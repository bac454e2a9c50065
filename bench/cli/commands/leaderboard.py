"""`bench leaderboard build | serve`: the pages from the records."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

from bench.cli.options import place, site
from leaderboard.site import build


def main(options: argparse.Namespace) -> int:
    """Write the pages, say where they are and what was refused (then 1); `serve` shows them on this machine only."""
    results = place(options).results
    index = build(results, site(options))
    print(index)
    refused = list(results.refused())
    for _, reason in refused:
        print(f"refused: {reason}", file=sys.stderr)
    if options.leaderboard_verb == "serve":
        handler = partial(SimpleHTTPRequestHandler, directory=str(index.parent))
        with ThreadingHTTPServer(("127.0.0.1", options.port), handler) as server:
            print(f"http://127.0.0.1:{options.port}/ (stop with Ctrl-C)")
            server.serve_forever()
    return 1 if refused else 0
