# SPDX-License-Identifier: Apache-2.0
"""Files of the host: read, written, linked, reached by detours."""

from __future__ import annotations

import pytest
from tests.sandbox.hostile.arena import Arena, Case, bare, case, shell

CASES = [
    case(
        "open secrets by their paths",
        """
        for path in ('@SECRET@', '@VARSECRET@', '@SHMSECRET@', '@CWDSECRET@'):
            attempt(path, lambda: open(path).read())
            attempt('write ' + path, lambda: os.open(path, os.O_WRONLY))
            attempt('stat ' + path, lambda: os.stat(path))
        print('CONTAINED')
        """,
    ),
    case(
        "system secrets",
        """
        for path in ('/etc/shadow', '/etc/gshadow', '/etc/machine-id', '/etc/sudoers', '/etc/ssh/sshd_config',
                     '/root/.bashrc', '/root/.ssh/id_rsa', '/root/.netrc', '/var/log/dpkg.log', '/boot',
                     '/var/lib/dpkg/status', '/var/run/docker.sock', '/run/docker.sock', '/run/secrets',
                     '/var/run/secrets/kubernetes.io/serviceaccount/token', '/etc/resolv.conf.bak'):
            attempt(path, lambda: open(path).read() if not os.path.isdir(path) else os.listdir(path))
        print('CONTAINED')
        """,
    ),
    case(
        "directories of the host",
        """
        for path in ('/root', '/home', '/var/tmp', '/srv', '/mnt', '/media', '/boot', '/var/lib', '/var/log', '/run'):
            try:
                names = os.listdir(path)
            except OSError as error:
                print('refused', path, error)
                continue
            shown = [name for name in names if not sys.base_prefix.startswith(f'{path}/{name}/')]
            if shown:
                print('ESCAPED', path, shown[:5])
        print('CONTAINED')
        """,
    ),
    case(
        "walk the whole tree for the secret",
        """
        half1, half2 = '@FILEHALF1@', '@FILEHALF2@'
        looked = 0
        for top in sorted(os.listdir('/')):
            if top in ('proc', 'sys', 'usr', 'lib', 'lib64', 'bin', 'sbin'):
                continue
            for folder, _, names in os.walk('/' + top):
                if 'site-packages' in folder or '/python3' in folder:
                    continue
                for name in names:
                    path = os.path.join(folder, name)
                    try:
                        if os.path.isfile(path) and os.path.getsize(path) < 10000:
                            looked += 1
                            text = open(path, errors='replace').read()
                            if half1 in text and half2 in text and half1 + half2 in text:
                                print('ESCAPED', path)
                    except OSError:
                        pass
        print('walked', looked, 'CONTAINED')
        """,
        says=("walked", "CONTAINED"),
        slow=True,
        timeout=100.0,
    ),
    case(
        "symbolic links to secrets",
        """
        for number, target in enumerate(('@SECRET@', '@VARSECRET@', '/etc/shadow', '/proc/1/root/@SECRET@',
                                         '../../../../../../../../@SECRET@')):
            link = f'/tmp/link{number}'
            try:
                os.symlink(target, link)
            except OSError as error:
                print('no link', error)
            attempt(target, lambda: open(link).read())
        print('CONTAINED')
        """,
    ),
    case(
        "hard links to secrets and interpreter files",
        """
        for number, target in enumerate(('@SECRET@', '/etc/shadow', '/etc/passwd', sys.executable, os.__file__)):
            attempt(target, lambda: os.link(target, f'/tmp/hard{number}'))
        print('CONTAINED')
        """,
    ),
    case(
        "dot dot until the roof",
        """
        up = '/..' * 40
        for path in (up + '@SECRET@', '/tmp' + up + '@SECRET@', '/proc/self/root' + up + '@SECRET@',
                     '/dev/fd/..' + up + '@SECRET@', '/proc/self/cwd' + up + '@SECRET@'):
            attempt(path[-60:], lambda: open(path).read())
        os.chdir('/')
        for _ in range(60):
            os.chdir('..')
        attempt('relative', lambda: open('@SECRET@'[1:]).read())
        os.chdir('/tmp')
        print('CONTAINED')
        """,
    ),
    case(
        "roots and working directories of every process",
        """
        for pid in ['self', 'thread-self'] + [name for name in os.listdir('/proc') if name.isdigit()]:
            for door in ('root', 'cwd'):
                for path in ('@SECRET@', '@VARSECRET@', '@CWDSECRET@', '/etc/shadow', '/../secret'):
                    attempt(f'{pid}/{door}', lambda: open(f'/proc/{pid}/{door}{path}').read())
                attempt(f'{pid}/{door}/secret', lambda: open(f'/proc/{pid}/{door}/secret').read())
        for pid in ('@SERVERPID@', '@PID@', '@TESTPID@'):
            attempt(f'outside {pid}', lambda: open(f'/proc/{pid}/root@SECRET@').read())
        print('CONTAINED')
        """,
    ),
    case(
        "descriptors of every process",
        """
        for pid in [name for name in os.listdir('/proc') if name.isdigit()]:
            if int(pid) == os.getpid():
                continue
            attempt(f'fds of {pid}', lambda: [os.readlink(f'/proc/{pid}/fd/{n}') for n in os.listdir(f'/proc/{pid}/fd')]
                    or (_ for _ in ()).throw(OSError('none')))
        print('CONTAINED')
        """,
    ),
    case(
        "inherited directories as a way out",
        """
        for number in range(256):
            for path in ('@SECRET@'[1:], 'secret', '../secret', '../' * 30 + '@SECRET@'[1:], 'etc/shadow'):
                try:
                    print('ESCAPED', number, os.read(os.open(path, os.O_RDONLY, dir_fd=number), 100))
                except OSError:
                    pass
            try:
                os.fchdir(number)
                print('ESCAPED fchdir', number, os.getcwd())
            except OSError:
                pass
        print('CONTAINED')
        """,
    ),
    case(
        "openat2 and file handles",
        """
        class How(ctypes.Structure):
            _fields_ = [('flags', ctypes.c_uint64), ('mode', ctypes.c_uint64), ('resolve', ctypes.c_uint64)]
        how = How(0, 0, 0)
        attempt('openat2', lambda: call(437, 437, -100, b'@SECRET@', ctypes.byref(how), ctypes.sizeof(how)))
        class Handle(ctypes.Structure):
            _fields_ = [('bytes', ctypes.c_uint), ('type', ctypes.c_int), ('data', ctypes.c_ubyte * 128)]
        handle, mount = Handle(128), ctypes.c_int()
        attempt('handle of secret', lambda: call(303, 264, -100, b'@SECRET@', ctypes.byref(handle),
                                                 ctypes.byref(mount), 0))
        for inode in (1, 2, 12, 128):
            forged = Handle(8, 1)
            forged.data[0] = inode
            for folder in ('/', '/usr', '/tmp', '/proc'):
                try:
                    place = os.open(folder, os.O_RDONLY)
                except OSError:
                    continue
                attempt(f'handle {inode} at {folder}',
                        lambda: call(304, 265, place, ctypes.byref(forged), os.O_RDONLY))
                os.close(place)
        print('CONTAINED')
        """,
    ),
    case(
        "device files",
        """
        harmless = {'null', 'zero', 'full', 'random', 'urandom', 'tty', 'ptmx', 'fd', 'stdin', 'stdout', 'stderr',
                    'shm', 'pts', 'mqueue', 'core'}
        for name in os.listdir('/dev'):
            if name not in harmless:
                print('ESCAPED a device', name)
        for name in ('mem', 'kmem', 'port', 'kmsg', 'sda', 'vda', 'nvme0n1', 'loop0', 'loop-control', 'fuse', 'kvm',
                     'net/tun', 'vsock', 'vhost-net', 'mapper/control', 'cuse', 'userfaultfd', 'nvidia0', 'console',
                     'tty0', 'tty1', 'ttyS0', 'input/event0', 'snapshot', 'hwrng', 'rtc0', 'cpu/0/msr'):
            attempt(name, lambda: os.open('/dev/' + name, os.O_RDWR))
            attempt('read ' + name, lambda: os.open('/dev/' + name, os.O_RDONLY))
        print('CONTAINED')
        """,
    ),
    case(
        "make device nodes",
        """
        import stat
        for name, kind, major, minor in (('mem', stat.S_IFCHR, 1, 1), ('disk', stat.S_IFBLK, 254, 0),
                                         ('kmsg', stat.S_IFCHR, 1, 11), ('null', stat.S_IFCHR, 1, 3),
                                         ('whiteout', stat.S_IFCHR, 0, 0)):
            def make():
                os.mknod('/tmp/' + name, kind | 0o666, os.makedev(major, minor))
                return os.open('/tmp/' + name, os.O_RDWR)
            attempt(name, make)
        print('CONTAINED')
        """,
    ),
    case(
        "write into the system",
        """
        for path in ('/etc/passwd', '/etc/shadow', '/etc/hosts', '/etc/ld.so.preload', '/etc/@MARK@', '/usr/bin/@MARK@',
                     '/usr/lib/@MARK@', '/bin/@MARK@', '/lib/@MARK@', '/@MARK@', '/var/@MARK@', '/run/@MARK@',
                     '/dev/@MARK@', '/proc/@MARK@', '/sys/@MARK@', '/opt/@MARK@', '/root/@MARK@', '/home/@MARK@'):
            attempt(path, lambda: os.open(path, os.O_WRONLY | (os.O_CREAT if '@MARK@' in path else 0)))
        print('CONTAINED')
        """,
    ),
    case(
        "write into the interpreter and its packages",
        """
        import json, numpy, site
        places = [sys.executable, os.__file__, json.__file__, numpy.__file__, os.path.realpath(sys.executable)]
        places += [os.path.join(folder, '@MARK@.pth') for folder in sys.path if os.path.isdir(folder)
                   and not folder.startswith(('/tmp', '/work', '/home'))]
        for folder in site.getsitepackages():
            places += [os.path.join(folder, 'sitecustomize.py'), os.path.join(folder, '@MARK@.py')]
        for path in places:
            attempt(path, lambda: os.close(os.open(path, os.O_WRONLY | (0 if os.path.exists(path) else os.O_CREAT))))
            # nothing here would change a file even where it worked
            attempt('rename ' + path, lambda: os.rename(path, path))
            attempt('chmod ' + path, lambda: os.chmod(path, os.stat(path).st_mode & 0o7777))
            attempt('times ' + path, lambda: os.utime(path, ns=(os.stat(path).st_atime_ns, os.stat(path).st_mtime_ns)))
            attempt('owner ' + path, lambda: os.chown(path, -1, -1))
            attempt('attribute ' + path, lambda: os.setxattr(path, 'user.hx', b'1'))
        import importlib
        assert importlib.reload(json).dumps(1) == '1'
        print('CONTAINED')
        """,
    ),
    case(
        "write through /proc/self/exe and maps",
        """
        attempt('exe', lambda: open('/proc/self/exe', 'r+b').write(b'x'))
        for pid in [name for name in os.listdir('/proc') if name.isdigit()]:
            attempt('exe of ' + pid, lambda: open(f'/proc/{pid}/exe', 'r+b'))
        for link in os.listdir('/proc/self/map_files')[:5] if os.path.isdir('/proc/self/map_files') else []:
            attempt('map ' + link, lambda: open('/proc/self/map_files/' + link, 'r+b'))
        print('CONTAINED')
        """,
    ),
    case(
        "mounts of every kind",
        """
        libc.mount.argtypes = [ctypes.c_char_p] * 3 + [ctypes.c_ulong, ctypes.c_char_p]
        def mount(source, target, kind, flags, data=None):
            if libc.mount(source, target, kind, flags, data) != 0:
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
            return 'mounted'
        os.makedirs('/tmp/m', exist_ok=True)
        for what in ((b'none', b'/tmp/m', b'tmpfs', 0), (b'proc', b'/tmp/m', b'proc', 0), (b'/', b'/tmp/m', None, 4096),
                     (b'sysfs', b'/tmp/m', b'sysfs', 0), (None, b'/', None, 32 | 4096), (None, b'/usr', None, 32),
                     (b'devtmpfs', b'/tmp/m', b'devtmpfs', 0), (b'/dev/vda', b'/tmp/m', b'ext4', 0),
                     (b'cgroup', b'/tmp/m', b'cgroup', 0), (b'mqueue', b'/tmp/m', b'mqueue', 0),
                     (b'o', b'/tmp/m', b'overlay', 0, b'lowerdir=/,upperdir=/tmp,workdir=/tmp'),
                     (None, b'/', None, (1 << 18) | 16384)):
            attempt(str(what), lambda: mount(*what))
        libc.umount2(b'/tmp/m', 2)
        if ctypes.get_errno() not in (errno.EPERM, errno.ENOSYS):   # EINVAL: it would be allowed
            print('ESCAPED umount', ctypes.get_errno())
        print('CONTAINED')
        """,
    ),
    case(
        "the new mount interface",
        """
        attempt('open_tree', lambda: call(428, 428, -100, b'/', 1))
        attempt('fsopen', lambda: call(430, 430, b'tmpfs', 0))
        attempt('fspick', lambda: call(433, 433, -100, b'/', 0))
        attempt('move_mount', lambda: call(429, 429, -100, b'/tmp', -100, b'/usr', 0))
        attempt('mount_setattr', lambda: call(442, 442, -100, b'/', 0, (ctypes.c_uint64 * 4)(), 32))
        attempt('pivot_root', lambda: call(155, 41, b'/', b'/tmp'))
        attempt('chroot', lambda: os.chroot('/tmp'))
        print('CONTAINED')
        """,
    ),
    case(
        "namespaces of its own",
        """
        for name, flag in (('user', 0x10000000), ('mount', 0x20000), ('pid', 0x20000000), ('net', 0x40000000),
                           ('ipc', 0x8000000), ('uts', 0x4000000), ('cgroup', 0x2000000), ('time', 0x80),
                           ('user+mount', 0x10020000), ('user+net', 0x50000000)):
            attempt('unshare ' + name, lambda: call(272, 97, flag))
        for pid in ('self', '1'):
            for name in ('user', 'mnt', 'pid', 'net', 'ipc', 'uts', 'cgroup'):
                path = f'/proc/{pid}/ns/{name}'
                attempt('setns ' + path, lambda: call(308, 268, os.open(path, os.O_RDONLY), 0))
        print('CONTAINED')
        """,
    ),
    case(
        "a child with namespaces of its own",
        """
        for flag in (0x10000000 | 17, 0x10000000 | 0x20000 | 17, 0x50000000 | 17):
            def clone():
                pid = call(56, 220, flag, 0, 0, 0, 0)
                if pid == 0:
                    os._exit(0)
                os.waitpid(pid, 0)
                return pid
            attempt(hex(flag), clone)
        class Args(ctypes.Structure):
            _fields_ = [(f'f{number}', ctypes.c_uint64) for number in range(11)]
        args = Args(0x10000000 | 0x20000, 0, 0, 0, 17)
        def clone3():
            pid = call(435, 435, ctypes.byref(args), ctypes.sizeof(args))
            if pid == 0:
                os._exit(0)
            return pid
        attempt('clone3', clone3)
        print('CONTAINED')
        """,
    ),
    shell(
        "the tools of a shell",
        """
        cat @SECRET@ @VARSECRET@ @CWDSECRET@ /etc/shadow && echo ESCAPED
        unshare -Ur true && echo ESCAPED unshare
        unshare -Urm sh -c 'mount -t tmpfs none /mnt' && echo ESCAPED mount
        nsenter -t 1 -a true && echo ESCAPED nsenter
        mount -t tmpfs none /tmp && echo ESCAPED mount
        chroot / true && echo ESCAPED chroot
        mknod /tmp/n c 1 1 && echo ESCAPED mknod
        sudo -n true && echo ESCAPED sudo
        su -c true && echo ESCAPED su
        ls @ROOT@ && echo ESCAPED ls
        find / -xdev -name secret -not -path '/proc/*' 2>/dev/null | grep hx-canary && echo ESCAPED find
        echo CONTAINED
        """,
    ),
    case(
        "set-user-id programs give nothing",
        """
        import stat, subprocess
        for program in ('/usr/bin/su', '/usr/bin/passwd', '/usr/bin/mount', '/usr/bin/newgrp', '/usr/bin/sudo'):
            if os.path.exists(program):
                print(program, oct(os.stat(program).st_mode))
        os.makedirs('/tmp/s', exist_ok=True)
        open('/tmp/s/x', 'wb').write(open('/usr/bin/id', 'rb').read())
        os.chmod('/tmp/s/x', 0o6777)
        print(subprocess.run(['/tmp/s/x'], capture_output=True, text=True))
        for line in open('/proc/self/status'):
            if line.startswith(('CapPrm', 'CapEff', 'CapInh', 'CapAmb')) and int(line.split()[1], 16):
                print('ESCAPED', line)
            if line.startswith('NoNewPrivs') and line.split()[1] != '1':
                print('ESCAPED', line)
            if line.startswith('Seccomp:') and line.split()[1] != '2':
                print('ESCAPED', line)
        for call_name in ('setuid', 'setgid'):
            attempt(call_name, lambda: getattr(os, call_name)(12345))
        attempt('setgroups', lambda: os.setgroups([0, 1]))
        print('CONTAINED')
        """,
    ),
    case(
        "accounts of the host",
        """
        import pwd
        users = [entry.pw_name for entry in pwd.getpwall()]
        for name in ('sshd', 'systemd-network', 'messagebus', 'www-data', 'backup', 'list', 'uucp'):
            if name in users:
                print('ESCAPED', name)
        print(len(users), 'CONTAINED')
        """,
    ),
    case(
        "sysfs tells and obeys nothing",
        """
        for path in ('/sys/class/net', '/sys/block', '/sys/class/dmi/id', '/sys/devices/virtual/dmi/id/product_uuid',
                     '/sys/kernel/security', '/sys/kernel/debug', '/sys/kernel/tracing', '/sys/firmware',
                     '/sys/fs/cgroup'):
            attempt(path, lambda: os.listdir(path) or (_ for _ in ()).throw(OSError('empty')))
        for path in ('/sys/power/state', '/sys/kernel/mm/transparent_hugepage/enabled', '/sys/kernel/uevent_helper',
                     '/sys/fs/cgroup/pids/cgroup.procs', '/sys/fs/cgroup/memory/cgroup.procs'):
            attempt('write ' + path, lambda: os.open(path, os.O_WRONLY))
        print('CONTAINED')
        """,
    ),
    case(
        "files of another session",
        """
        import glob
        seen = [path for pattern in ('/tmp/*', '/work/*', '/dev/shm/*', '/home/*') for path in glob.glob(pattern)]
        for path in seen:
            if 'left-by' in path:
                print('ESCAPED', path)
        for folder in ('/tmp', '/work', '/dev/shm'):
            if os.path.isdir(folder):
                try:
                    open(f'{folder}/left-by-@MARK@', 'w').write('x')
                except OSError as error:
                    print(error)
        print('CONTAINED')
        """,
    ),
    bare(
        "files of another session, stateless",
        """
        import glob, os
        seen = [path for pattern in ('/tmp/*', '/work/*', '/dev/shm/*', '/var/tmp/*') for path in glob.glob(pattern)]
        print('ESCAPED' if any('left-by' in path for path in seen) else 'CONTAINED', len(seen))
        open('/tmp/left-by-stateless', 'w').write('x')
        """,
        language="python",
    ),
    bare(
        "files of another session, stateless again",
        """
        import os
        print('ESCAPED' if os.path.exists('/tmp/left-by-stateless') else 'CONTAINED')
        """,
        language="python",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda one: one.name)
def test_the_files_of_the_host_are_out_of_reach(arena: Arena, case: Case) -> None:
    arena.judge(case)


def test_what_a_session_writes_is_gone_with_it(arena: Arena) -> None:
    """Also under the same session id."""
    client = arena.client
    assert client.execute("open('/tmp/mine', 'w').write('x')", "writer").status == "completed"
    again = client.execute("import os; print(os.path.exists('/tmp/mine'))", "writer")
    assert again.stdout == "True\n"
    client.delete("writer")
    after = client.execute("import os; print(os.path.exists('/tmp/mine'))", "writer")
    assert (after.stdout, after.new) == ("False\n", True)
    client.delete("writer")
