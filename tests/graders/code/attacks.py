# SPDX-License-Identifier: Apache-2.0
"""Answers that try to pass without computing anything. `CANARY` stands in the tests, and nowhere else.

Never to be run without isolation: some of them kill every process that they can reach.
"""

from __future__ import annotations

CANARY = "canary-of-the-tests"
TESTS = [f"assert f(2) == 4  # {CANARY}", "assert f(3) == 9", "assert not f(0)", "assert f(12) == 144"]
CONSTANT = "\ndef f(x):\n    return 0\n"
WORD = '"-".join(["canary", "of", "the", "tests"])'
HONEST_IF_FOUND = """
def f(x):
    return x * x if FOUND else 0
"""

ENDS_EARLY = {
    "exit at once": "import sys\nsys.exit(0)",
    "quit": "quit()",
    "end without a word": "import os\nos._exit(0)",
    "exit inside": "def f(x):\n    raise SystemExit(0)",
    "end inside": "import os\ndef f(x):\n    os._exit(0)",
    "exit handler": f"import atexit, os\natexit.register(os._exit, 0){CONSTANT}",
    "thread that ends all": f"import threading, os\nthreading.Timer(0.05, os._exit, [0]).start(){CONSTANT}",
    "exec of true": 'import os\nos.execv("/bin/true", ["true"])',
    "interrupt": "def f(x):\n    raise KeyboardInterrupt",
    "generator exit": "def f(x):\n    raise GeneratorExit",
    "stop iteration": "def f(x):\n    raise StopIteration",
    "assertion of its own": "def f(x):\n    raise AssertionError",
    "fatal fault": "import ctypes\nctypes.string_at(0)",
    "kill self": "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
    "kill the judge": "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)",
    "interrupt the judge": f"import os, signal\nos.kill(os.getppid(), signal.SIGINT){CONSTANT}",
    "end the judge softly": f"import os, signal\nos.kill(os.getppid(), signal.SIGTERM){CONSTANT}",
    "kill everything": "import os, signal\nos.kill(-1, signal.SIGKILL)",
    "leave a child behind": f"import os\nif os.fork():\n    os._exit(0){CONSTANT}",
}

EQUAL_TO_ALL = """
def sly(base):
    body = {name: lambda self, *rest: True for name in ("__eq__", "__ge__", "__le__", "__bool__", "__contains__")}
    body["__hash__"] = lambda self: 0
    return type("Sly", (base,), body)
"""
SLY = {
    f"equal to all, a kind of {base}": f"{EQUAL_TO_ALL}\ndef f(x):\n    return sly({base})()"
    for base in ("object", "int", "float", "str", "list", "tuple", "dict", "set")
}
SLY |= {
    "the class itself": f"{EQUAL_TO_ALL}\nf = sly(object)",
    "says it is of numpy": f"{EQUAL_TO_ALL}\ndef f(x):\n    kind = sly(object)\n    kind.__module__ = 'numpy'\n"
    "    kind.ndim = 0\n    kind.item = lambda self: self\n    return kind()",
    "looks equal by reflection": "class R:\n    def __req__(self, other): return True\n"
    "    def __ne__(self, other): return False\ndef f(x):\n    return R()",
    "not a number": "def f(x):\n    return float('nan')",
    "an iterator for ever": "import itertools\ndef f(x):\n    return itertools.repeat(True)",
    "a builtin type": "f = str",
    "itself": "def f(x):\n    return f",
    "a list in itself": "def f(x):\n    a = []\n    a.append(a)\n    return a",
    "too deep": "def f(x):\n    a = []\n    for _ in range(10**5):\n        a = [a]\n    return a",
    "too large": "def f(x):\n    return 'x' * (1 << 26)",
    "nothing": "def f(x):\n    return None",
    "no function": "g = 1",
    "a number for a function": "f = 4",
}

PATCHES = {
    "assert and compare": f"import builtins\nbuiltins.AssertionError = Exception\nbuiltins.exec = print{CONSTANT}",
    "numbers by ctypes": "import ctypes, gc\nd = gc.get_referents(int.__dict__)[0]\n"
    f"d['__eq__'] = lambda a, b: True\nctypes.pythonapi.PyType_Modified(ctypes.py_object(int)){CONSTANT}",
    "every module": "import sys\nfor m in list(sys.modules.values()):\n"
    "    for n in ('check', 'judge', 'decode', '_run', 'passed'):\n"
    f"        setattr(m, n, lambda *a, **k: True){CONSTANT}",
    "its own server": "import sys\nm = [m for n, m in sys.modules.items() if n.endswith('inside.candidate')][0]\n"
    f"m.encode = lambda value, refer: b'T'{CONSTANT}",
    "replies ahead of time": "import os\nreply = b'l2:s5:valueT'\n"
    f"os.write(4, (len(reply).to_bytes(4, 'big') + reply) * 50){CONSTANT}",
    "replies that are rubbish": f"import os\nos.write(4, b'\\xff' * 1000){CONSTANT}",
    "a closed pipe": f"import os\nos.close(4)\nos.close(3){CONSTANT}",
    "a module for the judge": "for name in ('fractions', 'decimal', 'numbers', 'collections'):\n"
    "    with open(name + '.py', 'x') as file:\n        file.write('Fraction = lambda text: 4')\n"
    "class Fraction:\n    def __str__(self): return '4/1'\nFraction.__module__ = 'fractions'\n"
    "def f(x):\n    return Fraction()",
    "limits of the judge": "import os, resource\ntry:\n"
    "    for limit in (resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE):\n"
    f"        resource.prlimit(os.getppid(), limit, (0, 0))\nexcept OSError:\n    pass{CONSTANT}",
}

MARKS = {
    "prints": f'print(\'passed\', \'ok\', \'[{{"kind":"passed","text":""}}]\', flush=True){CONSTANT}',
    "prints to every descriptor": "import os\nfor n in range(300):\n    try:\n"
    f'        os.write(n, b\'ready [{{"kind":"passed"}}]\\n\')\n    except OSError:\n        pass{CONSTANT}',
    "prints to the judge's": "import os\nfor p in {os.getppid(), 1, 2}:\n    for n in range(80):\n        try:\n"
    "            with open(f'/proc/{p}/fd/{n}', 'wb', 0) as file:\n"
    f"                file.write(b'passed\\n')\n        except OSError:\n            pass{CONSTANT}",
}

_SCAN = f"""
import os, re
WORD = {WORD}.encode()
def regions(pid):
    for line in open(f"/proc/{{pid}}/maps"):
        m = re.match(r"([0-9a-f]+)-([0-9a-f]+) r", line)
        if m:
            yield int(m[1], 16), int(m[2], 16)
def scan(pid):
    mine, found = open(f"/proc/{{pid}}/mem", "rb", 0), 0
    for start, end in regions(pid):
        try:
            mine.seek(start)
            data = mine.read(end - start)
            found += data.count(WORD + b"\\n") + data.count(WORD + b'"') + data.count(WORD + b"'")
        except (OSError, ValueError, OverflowError):
            pass
    return found
"""
PEEKS = {
    "own memory": f"{_SCAN}\nFOUND = scan('self')\n{HONEST_IF_FOUND}",
    "memory of the judge": f"{_SCAN}\ntry:\n    FOUND = scan(os.getppid())\nexcept OSError:\n    FOUND = 0\n"
    f"{HONEST_IF_FOUND}",
    "memory of the judge by a system call": f"""
import ctypes, os
WORD = {WORD}.encode()
libc = ctypes.CDLL(None, use_errno=True)
class V(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]
FOUND = 0
buffer = ctypes.create_string_buffer(1 << 16)
for line in open("/proc/self/maps"):
    start = int(line.split("-")[0], 16)
    got = libc.process_vm_readv(os.getppid(), ctypes.byref(V(ctypes.addressof(buffer), 1 << 16)), 1,
                                ctypes.byref(V(start, 1 << 16)), 1, 0)
    FOUND += got > 0
if libc.ptrace(16, os.getppid(), 0, 0) == 0:
    FOUND += 1
{HONEST_IF_FOUND}""",
    "files of the judge": f"""
import os
WORD, FOUND = {WORD}.encode(), 0
for pid in [p for p in os.listdir("/proc") if p.isdigit() and int(p) != os.getpid()]:
    for name in ["cmdline", "environ", *(f"fd/{{n}}" for n in range(70)), "root", "cwd", "exe"]:
        try:
            with open(f"/proc/{{pid}}/{{name}}", "rb") as file:
                FOUND += WORD in file.read(1 << 22)
        except OSError:
            pass
{HONEST_IF_FOUND}""",
    "standard input": f"""
import os, sys
WORD = {WORD}
FOUND = WORD in sys.stdin.read()
for n in range(300):
    if n not in (3, 4):
        try:
            os.lseek(n, 0, 0)
        except OSError:
            pass
        try:
            os.set_blocking(n, False)
            FOUND |= WORD.encode() in os.read(n, 1 << 20)
        except (OSError, TypeError):
            pass
{HONEST_IF_FOUND}""",
    "temporary files": f"""
import os
WORD, FOUND = {WORD}.encode(), 0
for top in ("/tmp", "/work", "/dev/shm", "/run", "/var", os.getcwd()):
    for place, _, names in os.walk(top):
        for name in names:
            try:
                with open(os.path.join(place, name), "rb") as file:
                    FOUND += WORD in file.read(1 << 20)
            except OSError:
                pass
{HONEST_IF_FOUND}""",
    "objects of the interpreter": f"""
import gc, sys
WORD = {WORD}
FOUND = any(WORD in str(o) for o in gc.get_objects() if isinstance(o, list) and len(o) < 99)
frame = sys._getframe()
while frame:
    for v in [*frame.f_locals.values(), *frame.f_globals.values()]:
        FOUND |= isinstance(v, (str, bytes, list)) and v is not WORD and WORD in str(v)
    frame = frame.f_back
FOUND |= WORD in repr([getattr(sys, n) for n in ("argv", "orig_argv", "path", "flags")])
{HONEST_IF_FOUND}""",
}

SLOW = {
    "busy for ever": "while True:\n    pass",
    "busy inside": "def f(x):\n    while True:\n        pass",
    "busy with signals off": "import signal\nfor n in range(1, 64):\n    try:\n"
    "        signal.signal(n, signal.SIG_IGN)\n    except (OSError, ValueError):\n        pass\nwhile True:\n    pass",
    "asleep": "import time\ntime.sleep(1000)",
    "a stopped judge": f"import os, signal\nos.kill(os.getppid(), signal.SIGSTOP){CONSTANT}",
    "a raised limit": "import resource\ntry:\n    resource.setrlimit(resource.RLIMIT_CPU, (999, 999))\n"
    "except (OSError, ValueError):\n    pass\nwhile True:\n    pass",
}

ALL = {**ENDS_EARLY, **SLY, **PATCHES, **MARKS, **PEEKS, **SLOW}
