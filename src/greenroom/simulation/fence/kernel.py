"""The kernel's fence: a process closes itself in, and cannot open itself again.

Landlock lets it connect by TCP to one port and write below some folders; seccomp closes every other kind of
socket. What this kernel does not offer is named, never silently left out.
"""

import ctypes
import errno
import os
import platform
import struct
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from greenroom.errors import FenceNotHeld

# Syscalls that both machines number alike, and those that they do not.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF, _IO_URING_SETUP = 444, 445, 446, 425
_NUMBERS: Final = {
    "x86_64": {
        "arch": 0xC000003E,
        "seccomp": 317,
        "socket": 41,
        "sendto": 44,
        "sendmsg": 46,
        "sendmmsg": 307,
        "socketpair": 53,
        "msgsnd": 69,
        "shmat": 30,
    },
    "aarch64": {
        "arch": 0xC00000B7,
        "seccomp": 277,
        "socket": 198,
        "sendto": 206,
        "sendmsg": 211,
        "sendmmsg": 269,
        "socketpair": 199,
        "msgsnd": 189,
        "shmat": 196,
    },
}
_NO_NEW_PRIVILEGES = 38
_RULE_PATH, _RULE_PORT = 1, 2

# What Landlock counts as writing: files, folders, links and devices made, removed or moved.
_WRITE_FILE, _REFER, _TRUNCATE, _IOCTL_DEV = 1 << 1, 1 << 13, 1 << 14, 1 << 15
_CHANGING = sum(1 << bit for bit in range(4, 13))
_CONNECT, _BIND = 1 << 1, 1 << 0
_SCOPES = 0b11  # abstract sockets and signals of processes outside

_TCP_ABI: Final = 4
_FAST_OPEN = 0x20000000
_TCP = 6


def landlock_version() -> int:
    """The version of Landlock that this kernel offers; 0 if none."""
    if sys.platform != "linux":
        return 0
    return max(0, _syscall(_CREATE_RULESET, None, 0, 1, fails=False))


def not_held_by_kernel() -> tuple[str, ...]:
    """What the kernel's fence cannot hold here, each with the reason; empty if it holds everything."""
    if sys.platform != "linux":
        return (f"anything: there is no Landlock on {sys.platform}",)
    version = landlock_version()
    if not version:
        return ("anything: this kernel has no Landlock, or has it switched off",)
    reasons: list[str] = []
    if version < _TCP_ABI:
        reasons.append(f"TCP: this kernel has Landlock {version}, and connections need {_TCP_ABI}")
    if platform.machine() not in _NUMBERS or not _has_seccomp():
        reasons.append(f"UDP and other sockets: no seccomp filter for {platform.machine()} here")
    return tuple(reasons)


def confine(writable: Iterable[str], port: int) -> None:
    """Close this process in: TCP to `port` and no other, no other sockets, writing below `writable` only.

    For a process with one thread, as the rules hold for the thread and what it starts. What the kernel
    lacks is left out: `not_held_by_kernel` says what that is.
    """
    version = landlock_version()
    if not version:
        return
    _check(_libc().prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0), "no_new_privs")
    _restrict(version, writable, port)
    if platform.machine() in _NUMBERS and _has_seccomp():
        _filter_sockets()


def _restrict(version: int, writable: Iterable[str], port: int) -> None:
    changing = _WRITE_FILE | _CHANGING
    changing |= _REFER if version >= 2 else 0
    changing |= _TRUNCATE if version >= 3 else 0
    changing |= _IOCTL_DEV if version >= 5 else 0
    network = _CONNECT if version >= _TCP_ABI else 0
    attributes = struct.pack("=QQQ", changing, network, _SCOPES if version >= 6 else 0)
    size = 8 if version < _TCP_ABI else 16 if version < 6 else 24
    ruleset = _syscall(_CREATE_RULESET, attributes, size, 0)
    try:
        for path in writable:
            _allow_path(ruleset, path, changing)
        _allow_path(ruleset, os.devnull, _WRITE_FILE | (changing & _TRUNCATE))
        if network:
            _syscall(_ADD_RULE, ruleset, _RULE_PORT, struct.pack("=QQ", _CONNECT, port), 0)
        _syscall(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow_path(ruleset: int, path: str, rights: int) -> None:
    folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        _syscall(_ADD_RULE, ruleset, _RULE_PATH, struct.pack("=Qi", rights, folder), 0)
    finally:
        os.close(folder)


# Seccomp: a small program that the kernel runs at every syscall

_LOAD, _EQUAL, _ALL_BITS, _AND, _RETURN = 0x20, 0x15, 0x45, 0x54, 0x06
_ALLOW, _DENY = 0x7FFF0000, 0x00050000 | errno.EACCES
_NUMBER_AT, _ARCH_AT, _ARGS_AT = 0, 4, 16


_Line = tuple[int, int, int, int]
"""An instruction, how far to skip if it holds and if not, and its number."""


def _filter_sockets() -> None:
    """Allow sockets for TCP alone, opened by `connect` alone; pairs that lead nowhere else stay free."""
    known = _NUMBERS[platform.machine()]
    lines = [*_ways_past_a_socket(known), *_kinds_of_socket(known)]
    program = b"".join(struct.pack("=HBBI", *line) for line in lines)
    held = ctypes.create_string_buffer(program)
    # As the kernel has it: a count, padding, and a pointer.
    whole = struct.pack("@HxxxxxxP", len(lines), ctypes.addressof(held))
    _syscall(known["seccomp"], 1, 1, whole)


def _ways_past_a_socket(known: Mapping[str, int]) -> list[_Line]:
    """Deny calls of another machine, and those that send without a socket or before `connect`."""
    lines: list[_Line] = [
        (_LOAD, 0, 0, _ARCH_AT),
        (_EQUAL, 1, 0, known["arch"]),
        (_RETURN, 0, 0, _DENY),
        (_LOAD, 0, 0, _NUMBER_AT),
        (_ALL_BITS, 0, 1, 0x40000000),  # numbers of x32, the other way in
        (_RETURN, 0, 0, _DENY),
    ]
    # The first one's operations pass by every filter; the others lead to processes without a socket.
    for number in (_IO_URING_SETUP, known["msgsnd"], known["shmat"]):
        lines += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _DENY)]
    for name, at in (("sendto", 3), ("sendmsg", 2), ("sendmmsg", 3)):
        # Connects without `connect`, and so bypasses Landlock.
        lines += [
            (_EQUAL, 0, 4, known[name]),
            (_LOAD, 0, 0, _ARGS_AT + 8 * at),
            (_ALL_BITS, 0, 1, _FAST_OPEN),
            (_RETURN, 0, 0, _DENY),
            (_RETURN, 0, 0, _ALLOW),
        ]
    return lines


def _kinds_of_socket(known: Mapping[str, int]) -> list[_Line]:
    """Allow pairs of sockets, but not for datagrams, which may send to any address; else TCP alone."""
    return [
        (_EQUAL, 0, 6, known["socketpair"]),
        (_LOAD, 0, 0, _ARGS_AT + 8),
        (_AND, 0, 0, 0xF),
        (_EQUAL, 2, 0, 1),  # SOCK_STREAM
        (_EQUAL, 1, 0, 5),  # SOCK_SEQPACKET
        (_RETURN, 0, 0, _DENY),
        (_RETURN, 0, 0, _ALLOW),
        (_EQUAL, 1, 0, known["socket"]),
        (_RETURN, 0, 0, _ALLOW),
        (_LOAD, 0, 0, _ARGS_AT),
        (_EQUAL, 2, 0, 2),  # AF_INET
        (_EQUAL, 1, 0, 10),  # AF_INET6
        (_RETURN, 0, 0, _DENY),
        (_LOAD, 0, 0, _ARGS_AT + 8),
        (_AND, 0, 0, 0xF),
        (_EQUAL, 1, 0, 1),  # SOCK_STREAM
        (_RETURN, 0, 0, _DENY),
        (_LOAD, 0, 0, _ARGS_AT + 16),
        (_EQUAL, 1, 0, 0),
        (_EQUAL, 0, 1, _TCP),  # and not SCTP or MPTCP, which Landlock does not see
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _DENY),
    ]


def _has_seccomp() -> bool:
    allowed = ctypes.c_uint32(_ALLOW)
    number = _NUMBERS[platform.machine()]["seccomp"]
    return _syscall(number, 2, 0, ctypes.byref(allowed), fails=False) == 0


# Calls into the kernel


def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)


def _syscall(number: int, *args: object, fails: bool = True) -> int:
    given = [ctypes.c_long(a) if isinstance(a, int) else a for a in args]
    found = int(_libc().syscall(ctypes.c_long(number), *given))
    return _check(found, f"syscall {number}") if fails else found


def _check(found: int, what: str) -> int:
    if found < 0:
        code = ctypes.get_errno()
        raise FenceNotHeld(f"the kernel did not put up its fence: {what}: {os.strerror(code)}.")
    return found


def writable_folders(*folders: str | Path) -> list[str]:
    """Folders that a closed-in process may write to, made if missing: the kernel's rules need folders that exist."""
    for folder in folders:
        Path(folder).mkdir(parents=True, exist_ok=True)
    return [str(Path(folder).resolve()) for folder in folders]
