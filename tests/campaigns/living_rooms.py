"""What two sandboxes can tell each other while both are alive: bits a second.

`python tests/campaigns/living_rooms.py [CHANNEL ...]` starts two sandboxes at a time. In each period of the clock one
sends a bit on every lane, and the other reads it. The rate is that of a binary symmetric channel with the share of
wrong bits, at the best of four periods; other work on the machine makes it lower. Two living rooms are always of one
part: they release, or attack.

- futex: threads that wait on words of a mapped file of Python; waking them tells how many there were.
- processor: a process that computes slows down one on the same processor.
- numbers: the kernel numbers pipes in order.
- pages: a user's pipes share a number of pages; beyond it new ones are small.
- timers: a user's timers share a number.
- getrusage, sched_getcpu: another processor, or switches, tell that somebody computes.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from math import log2

from bench.sandbox import confined

CODE = r"""
import ctypes, fcntl, os, random, resource, struct, sys, threading, time
channel, role, start, period, count, lanes = *sys.argv[1:3], *map(float, sys.argv[3:5]), *map(int, sys.argv[5:])
drawn = random.Random(7)
bits = [[drawn.getrandbits(1) for _ in range(lanes)] for _ in range(count)]
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype, libc.syscall.restype = ctypes.c_void_p, ctypes.c_long
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
FUTEX = {"x86_64": 202}.get(os.uname().machine, 98)
file = open(os.__file__, "rb")
place = libc.mmap(None, 4096, 1, 1, file.fileno(), 0)
held = []

def until(moment):
    while (left := moment - time.time()) > 0:
        if left > 0.002:
            time.sleep(left - 0.001)

def new_pipe():
    ends = os.pipe()
    number, pages = os.fstat(ends[0]).st_ino, fcntl.fcntl(ends[0], 1032)
    for end in ends:
        os.close(end)
    return number, pages

def futex(lane, operation, value, seconds):
    return libc.syscall(FUTEX, ctypes.c_void_p(place + 4 * lane), operation, value, seconds, None, 0)

def wait(lane):
    for n in range(count):
        until(start + n * period)
        end = start + (n + 0.95) * period
        while bits[n][lane] and (left := end - time.time()) > 0:
            word = ctypes.c_int.from_address(place + 4 * lane).value
            futex(lane, 0, word, struct.pack("qq", 0, int(left * 1e9)))

def send(bit, end):
    while bit and channel in ("processor", "getrusage", "sched_getcpu") and time.time() < end:
        pass
    if channel == "numbers" and bit:
        for _ in range(8):
            new_pipe()
    if channel == "pages":
        try:
            while bit and len(held) < 2200:
                held.extend(os.pipe())
        except OSError:
            pass
        while not bit and held:
            os.close(held.pop())
    if channel == "timers":
        while bit and len(held) < 50:
            timer = ctypes.c_void_p()
            held.append(timer if libc.timer_create(1, None, ctypes.byref(timer)) == 0 else None)
        while not bit and held:
            libc.timer_delete(held.pop())

before = 0
def hear(begin):
    global before
    if channel == "futex":
        until(begin + 0.6 * period)
        return [futex(lane, 1, 9, None) > 0 for lane in range(lanes)]
    if channel in ("processor", "getrusage", "sched_getcpu"):
        until(begin + 0.15 * period)
        first, computed, switched = os.sched_getaffinity(0), time.process_time(), resource.getrusage(0).ru_nivcsw
        moves, end = set(), begin + 0.85 * period
        while time.time() < end:
            moves.add(libc.sched_getcpu())
        if channel == "processor":
            return [time.process_time() - computed < 0.5 * 0.7 * period + 0.2 * period]
        return [len(moves) > 1 if channel == "sched_getcpu" else resource.getrusage(0).ru_nivcsw > switched]
    until(begin + 0.7 * period)
    if channel == "timers":
        made = []
        for _ in range(40):
            timer = ctypes.c_void_p()
            if libc.timer_create(1, None, ctypes.byref(timer)) == 0:
                made.append(timer)
        for timer in made:
            libc.timer_delete(timer)
        return [len(made) < 40]
    number, pages = new_pipe()
    more, before = number - before > 4, number
    return [more if channel == "numbers" else pages < 1 << 16]

if channel in ("processor", "getrusage", "numbers"):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
if role == "hear":
    if channel == "timers":
        resource.setrlimit(resource.RLIMIT_SIGPENDING, (60, 60))
    before = new_pipe()[0]
    found = [hear(start + n * period) for n in range(count)]
    print(sum(bool(a) != b for row, told in zip(found, bits) for a, b in zip(row, told)) / count / lanes)
elif channel == "futex":
    threads = [threading.Thread(target=wait, args=(lane,)) for lane in range(lanes)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
else:
    for n in range(count):
        until(start + n * period)
        send(bits[n][0], start + (n + 1) * period)
"""
CHANNELS = {"futex": 16, "processor": 1, "getrusage": 1, "sched_getcpu": 1, "numbers": 1, "pages": 1, "timers": 1}
PERIODS = (0.002, 0.005, 0.02, 0.08)
SECONDS, START = 4.0, 1.5


def wrong(channel: str, lanes: int, period: float) -> float | None:
    """The share of wrong bits; None if the call is refused."""
    count, start = max(60, int(SECONDS / period)), time.time() + START
    words = [str(start), str(period), str(count), str(lanes)]
    rooms = [
        subprocess.Popen(
            confined([sys.executable, "-I", "-c", CODE, channel, role, *words], folder=None, files=(), device="cpu"),
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )
        for role in ("tell", "hear")
    ]  # fmt: skip
    heard = [room.communicate()[0] for room in rooms][1].split()
    return float(heard[0]) if heard else None


def rate(share: float, lanes: int, period: float) -> float:
    """Bits a second."""
    lost = 0.0 if share in (0, 1) else -share * log2(share) - (1 - share) * log2(1 - share)
    return lanes * (1 - lost) / period


def main() -> None:
    """Print a line for each channel."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("channels", nargs="*", metavar="CHANNEL", help=", ".join(CHANNELS))
    for channel in parser.parse_args().channels or CHANNELS:
        found = {period: wrong(channel, CHANNELS[channel], period) for period in PERIODS}
        rates = {period: rate(share, CHANNELS[channel], period) for period, share in found.items() if share is not None}
        best = max(rates, key=lambda period: rates[period], default=None)
        if best is None:
            print(f"{channel}: refused")
        else:
            print(
                f"{channel}: {rates[best]:.0f} bits a second ({best * 1000:g} ms, {found[best]:.3f} wrong)", flush=True
            )


if __name__ == "__main__":
    main()
