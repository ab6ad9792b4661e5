# SPDX-License-Identifier: GPL-2.0
"""The addresses of the two ends of a path."""

import socket

from tollwaylib.errors import TollwayError


def _first(option, name, port, family=0):
    """The first address of a name, as (family, address for a socket)."""
    try:
        found = socket.getaddrinfo(name, port, family, socket.SOCK_DGRAM)
    except socket.gaierror as error:
        raise TollwayError(f"{option} {name}: {error.strerror}") from error
    except UnicodeError as error:
        # A part of more than 63 bytes, an empty one, or bytes that are no text.
        raise TollwayError(f"{option} {name}: this is not the name of a "
                           "host") from error
    return found[0][0], found[0][4]


def ends(peer, local, port):
    """(family, address of this end, address of the peer) of one path.

    peer: name or address. local: the same, or None for any address of this host.
    """
    family, there = _first("--peer", peer, port)
    anywhere = "::" if family == socket.AF_INET6 else "0.0.0.0"
    _, here = _first("--local", local or anywhere, port, family)
    return family, here, there
