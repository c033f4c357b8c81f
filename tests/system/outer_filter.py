# SPDX-License-Identifier: Apache-2.0
"""A seccomp filter around cejail, as that of a container engine or a sandbox."""

import ctypes
import os
import struct

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 22, 38


def refuse(calls, third=None):
    """For preexec_fn: answers each of these system calls, by number, with an errno; with `third` only if this is
    its third argument."""
    rows = [(0x20, 0, 0, 0)]  # loads the number of the call
    for number, code in calls.items():
        if third is None:
            rows += [(0x15, 0, 1, number), (0x06, 0, 0, 0x00050000 | code)]
        else:  # it loads the argument, and the number again
            rows += [(0x15, 0, 4, number), (0x20, 0, 0, 32), (0x15, 0, 1, third), (0x06, 0, 0, 0x00050000 | code), (0x20, 0, 0, 0)]
    rows.append((0x06, 0, 0, 0x7FFF0000))
    text = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *row) for row in rows))
    libc = ctypes.CDLL(None, use_errno=True)

    def enter():
        header = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(rows), ctypes.addressof(text)))
        libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        if libc.prctl(PR_SET_SECCOMP, 2, ctypes.c_ulong(ctypes.addressof(header)), 0, 0) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    return enter
