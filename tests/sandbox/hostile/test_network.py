# SPDX-License-Identifier: Apache-2.0
"""No packet leaves: TCP, UDP, raw, unix, abstract, and the sandbox's own API."""

from __future__ import annotations

import pytest
from tests.sandbox.hostile.arena import Arena, Case, bare, case, shell

CASES = [
    case(
        "connect over TCP",
        """
        for host, port in (('127.0.0.1', int('@TCP4@')), ('127.0.0.1', int('@ANY4@')), ('0.0.0.0', int('@ANY4@')),
                           ('localhost', int('@TCP4@')), ('1.1.1.1', 53), ('169.254.169.254', 80), ('10.0.0.1', 80)):
            attempt(f'{host}:{port}', lambda: socket.create_connection((host, port), timeout=2))
        for host in ('::1', '::ffff:127.0.0.1', 'fe80::1%lo'):
            attempt(host, lambda: socket.create_connection((host, int('@TCP6@')), timeout=2))
        print('CONTAINED')
        """,
    ),
    case(
        "datagrams",
        """
        for family, host, port in ((socket.AF_INET, '127.0.0.1', int('@UDP4@')),
                                   (socket.AF_INET6, '::1', int('@UDP6@')), (socket.AF_INET, '8.8.8.8', 53),
                                   (socket.AF_INET, '255.255.255.255', 67)):
            def send():
                maker = socket.socket(family, socket.SOCK_DGRAM)
                if host == '255.255.255.255':
                    maker.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
                return maker.sendto(b'leak', (host, port))
            try:
                print('sent', host, send())   # into a network of its own a packet may go: the canaries must not get it
            except OSError as error:
                print('refused', host, error)
        print('CONTAINED')
        """,
    ),
    case(
        "names",
        """
        for name in ('example.com', 'metadata.google.internal', 'localhost.localdomain'):
            attempt(name, lambda: socket.getaddrinfo(name, 80))
        import urllib.request
        attempt('http', lambda: urllib.request.urlopen('http://example.com', timeout=3).read())
        attempt('own api', lambda: urllib.request.urlopen('http://127.0.0.1:@PORT@/health', timeout=3).read())
        print('CONTAINED')
        """,
        slow=True,
        timeout=30.0,
    ),
    case(
        "the sandbox calls itself",
        """
        import json
        body = json.dumps({'generated_code': 'print(1)'}).encode()
        request = (b'POST /execute HTTP/1.1\\r\\nHost: x\\r\\nX-Session-ID: intruder\\r\\nContent-Length: '
                   + str(len(body)).encode() + b'\\r\\n\\r\\n' + body)
        for family, host in ((socket.AF_INET, '127.0.0.1'), (socket.AF_INET6, '::1')):
            def ask():
                maker = socket.socket(family)
                maker.settimeout(2)
                maker.connect((host, int('@PORT@')))
                maker.sendall(request)
                return maker.recv(1000)
            attempt(host, ask)
        print('CONTAINED')
        """,
    ),
    case(
        "sockets of every family",
        """
        ours = {socket.AF_UNIX, socket.AF_INET, socket.AF_INET6}
        made = []
        for family in range(0, 48):
            for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
                for protocol in (0, 1, 15):
                    try:
                        socket.socket(family, kind, protocol).close()
                    except OSError:
                        continue
                    if (family not in ours and family != 16) or (kind == socket.SOCK_RAW and family in (2, 10, 17)):
                        made.append((family, int(kind), protocol))
        print('ESCAPED' if made else 'CONTAINED', made)
        """,
    ),
    case(
        "packets, kernel crypto, machine sockets",
        """
        attempt('packet', lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0x0300))
        attempt('raw', lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP))
        attempt('ping', lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP).sendto(
            b'\\x08\\0\\0\\0', ('127.0.0.1', 0)))
        attempt('crypto', lambda: socket.socket(38, socket.SOCK_SEQPACKET, 0))
        def vsock():
            maker = socket.socket(40, socket.SOCK_STREAM)
            maker.settimeout(1)
            maker.connect((2, 1024))
        attempt('vsock', vsock)
        attempt('bluetooth', lambda: socket.socket(31, socket.SOCK_RAW, 1))
        attempt('xdp', lambda: socket.socket(44, socket.SOCK_RAW, 0))
        attempt('rds', lambda: socket.socket(21, socket.SOCK_SEQPACKET, 0))
        attempt('tipc', lambda: socket.socket(30, socket.SOCK_STREAM, 0))
        print('CONTAINED')
        """,
    ),
    case(
        "interfaces and routes",
        """
        names = [name for _, name in socket.if_nameindex()] if hasattr(socket, 'if_nameindex') else []
        try:
            names += [line.split(':')[0].strip() for line in open('/proc/net/dev').read().splitlines()[2:]]
        except OSError as error:
            print(error)
        if set(names) - {'lo'}:
            print('ESCAPED', names)
        for path in ('/proc/net/route', '/proc/net/tcp', '/proc/net/unix', '/proc/net/arp'):
            try:
                lines = open(path).read().splitlines()[1:]
            except OSError:
                continue
            if any('hx-canary' in line or '@ABSTRACT@' in line for line in lines):
                print('ESCAPED', lines)
            if path.endswith(('route', 'arp')) and lines:
                print('ESCAPED', lines)
        print('CONTAINED')
        """,
        status=("completed", "error"),
        says=(),
    ),
    case(
        "netlink changes nothing",
        """
        import struct
        def up():
            maker = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
            message = struct.pack('=IHHII', 32, 16, 5, 1, 0) + struct.pack('=BxHiII', 0, 0, 1, 1, 1)
            maker.send(message)
            answer = maker.recv(1000)
            code = struct.unpack_from('=i', answer, 16)[0]
            if code:
                raise OSError(-code, os.strerror(-code))
            return 'interface up'
        attempt('up', up)
        attempt('audit', lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 9).send(
            struct.pack('=IHHII', 16, 1000, 5, 1, 0)))
        print('CONTAINED')
        """,
    ),
    case(
        "unix sockets with a path",
        """
        for path in ('@UNIX@', '/proc/self/root@UNIX@', '/proc/1/root@UNIX@', '/run/docker.sock',
                     '/run/dbus/system_bus_socket', '/tmp/.X11-unix/X0', '/run/systemd/notify', '/dev/log'):
            for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                attempt(path, lambda: socket.socket(socket.AF_UNIX, kind).connect(path) or 'connected')
        print('CONTAINED')
        """,
    ),
    case(
        "abstract unix sockets",
        """
        for name in (b'\\0@ABSTRACT@', b'\\0/tmp/.X11-unix/X0'):
            attempt(str(name), lambda: socket.socket(socket.AF_UNIX).connect(name) or 'connected')
        attempt('datagram', lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'leak', b'\\0@ABSTRACT@d'))
        print('CONTAINED')
        """,
    ),
    case(
        "an abstract socket for the next session",
        """
        server = socket.socket(socket.AF_UNIX)
        try:
            server.bind(b'\\0hx-meeting-point')
            server.listen()
        except OSError as error:
            print('refused', error)
        print('CONTAINED')
        """,
    ),
    case(
        "an abstract socket of another session",
        """
        attempt('meeting', lambda: socket.socket(socket.AF_UNIX).connect(b'\\0hx-meeting-point') or 'connected')
        attempt('own supervisor', lambda: [socket.socket(socket.AF_UNIX).connect(b'\\0' + name) or name for name in
                (b'zygote', b'supervisor', b'newskills')])
        print('CONTAINED')
        """,
    ),
    case(
        "listen for the host",
        """
        for family, host in ((socket.AF_INET, '0.0.0.0'), (socket.AF_INET6, '::')):
            try:
                maker = socket.socket(family)
                maker.bind((host, 0))
                maker.listen()
                print('listening where nobody comes', maker.getsockname()[1])
            except OSError as error:
                print('refused', error)
        print('CONTAINED')
        """,
    ),
    case(
        "fast open and connectionless sends",
        """
        MSG_FASTOPEN = 0x20000000
        stream, packet = socket.SOCK_STREAM, socket.SOCK_DGRAM
        for host, port in (('127.0.0.1', int('@TCP4@')), ('127.0.0.1', int('@PORT@'))):
            attempt('fast open', lambda: socket.socket().sendto(b'leak', MSG_FASTOPEN, (host, port)))
            attempt('mptcp', lambda: socket.socket(socket.AF_INET, stream, 262).connect((host, port)) or 'in')
            attempt('sctp', lambda: socket.socket(socket.AF_INET, stream, 132).connect((host, port)) or 'in')
            attempt('dccp', lambda: socket.socket(socket.AF_INET, 6, 33).connect((host, port)) or 'in')
            attempt('udplite', lambda: socket.socket(socket.AF_INET, packet, 136).connect((host, port))
                    and 'in' or (_ for _ in ()).throw(OSError('only a local name')))
        print('CONTAINED')
        """,
    ),
    case(
        "descriptors passed around",
        """
        import array
        left, right = socket.socketpair()
        secret = None
        for path in ('@SECRET@', '/proc/1/root', '/proc/1/fd/0'):
            try:
                secret = os.open(path, os.O_RDONLY)
                print('ESCAPED', path)
            except OSError as error:
                print('refused', error)
        own = os.open('/dev/null', os.O_RDONLY)
        left.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [own]))])
        print(right.recvmsg(1, 100)[0])
        forged = __import__('struct').pack('3i', 1, 0, 0)
        attempt('credentials of root', lambda: left.sendmsg([b'x'], [(socket.SOL_SOCKET, 2, forged)])
                if os.getuid() or os.getpid() != 1 else open('/nowhere'))
        print('CONTAINED')
        """,
        status=("completed", "error"),
        says=(),
    ),
    shell(
        "the network tools of a shell",
        """
        exec 3<>/dev/tcp/127.0.0.1/@TCP4@ && echo ESCAPED tcp
        echo leak > /dev/udp/127.0.0.1/@UDP4@
        curl -m 2 -s http://127.0.0.1:@PORT@/health && echo ESCAPED curl
        wget -T 2 -t 1 -q -O - http://127.0.0.1:@PORT@/health && echo ESCAPED wget
        perl -e 'use Socket; socket(S,PF_INET,SOCK_STREAM,0);
                 connect(S, sockaddr_in(@TCP4@, inet_aton("127.0.0.1"))) and print "ESCAPED perl"'
        echo CONTAINED
        """,
    ),
    bare(
        "a C++ program connects",
        """
        #include <arpa/inet.h>
        #include <cstdio>
        #include <sys/socket.h>
        #include <sys/un.h>
        #include <cstring>
        #include <cstddef>
        int main() {
            sockaddr_in a{};
            a.sin_family = AF_INET;
            a.sin_port = htons(@TCP4@);
            a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
            int s = socket(AF_INET, SOCK_STREAM, 0);
            if (s >= 0 && connect(s, (sockaddr *)&a, sizeof a) == 0) puts("ESCAPED tcp");
            sockaddr_un u{};
            u.sun_family = AF_UNIX;
            strcpy(u.sun_path, "@UNIX@");
            s = socket(AF_UNIX, SOCK_STREAM, 0);
            if (s >= 0 && connect(s, (sockaddr *)&u, sizeof u) == 0) puts("ESCAPED unix");
            strcpy(u.sun_path + 1, "@ABSTRACT@");
            u.sun_path[0] = 0;
            if (s >= 0 && connect(s, (sockaddr *)&u, offsetof(sockaddr_un, sun_path) + 1 + strlen("@ABSTRACT@")) == 0)
                puts("ESCAPED abstract");
            puts("CONTAINED");
        }
        """,
        language="cpp",
        slow=True,
        timeout=30.0,
    ),
    bare(
        "connect, stateless",
        """
        import socket
        for family, address in ((socket.AF_INET, ('127.0.0.1', int('@TCP4@'))), (socket.AF_UNIX, '@UNIX@'),
                                (socket.AF_UNIX, b'\\0@ABSTRACT@'), (socket.AF_INET, ('127.0.0.1', int('@PORT@')))):
            try:
                socket.socket(family).connect(address)
                print('ESCAPED', address)
            except OSError as error:
                print('refused', error)
        print('CONTAINED')
        """,
        language="python",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda one: one.name)
def test_no_packet_reaches_the_host(arena: Arena, case: Case) -> None:
    arena.judge(case)
    assert "intruder" not in arena.client.sessions()
