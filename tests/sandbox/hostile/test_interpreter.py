# SPDX-License-Identifier: Apache-2.0
"""Code that spoils the interpreter it runs in: what it breaks is its own, and the reply is one plain reply."""

from __future__ import annotations

import pytest
from tests.sandbox.hostile.arena import Arena, Case, bare

pytestmark = pytest.mark.parametrize("server_arena", ["ordinary"], indirect=True)
"""The same for every user."""

ANY = ("completed", "error", "crashed")


def spoilt(name: str, code: str, **settings: object) -> Case:
    """Any plain status; nothing is asked of the session afterwards, only of everybody else."""
    values: dict[str, object] = {"status": ANY, "says": (), "after": "broken", **settings}
    return bare(name, code, **values)


def hanging(name: str, code: str, **settings: object) -> Case:
    """Must be stopped at its deadline."""
    values: dict[str, object] = {
        "status": ("timeout",),
        "says": (),
        "after": "either",
        "timeout": 1.0,
        "slow": True,
        **settings,
    }
    return bare(name, code, **values)


CASES = [
    spoilt(
        "all builtins replaced",
        """
        import builtins
        for name in list(vars(builtins)):
            if not name.startswith('__'):
                setattr(builtins, name, None)
        """,
    ),
    spoilt("all builtins deleted", "import builtins\nvars(builtins).clear()"),
    spoilt("print and len lie", "import builtins\nbuiltins.print = builtins.len = lambda *a, **k: 10**9"),
    spoilt("isinstance raises", "import builtins\ndef no(*a): raise ValueError('no')\nbuiltins.isinstance = no"),
    spoilt(
        "compile and exec replaced", "import builtins\nbuiltins.compile = builtins.exec = lambda *a, **k: None"
    ),
    spoilt(
        "import replaced", "import builtins\ndef no(*a, **k): raise ImportError('no')\nbuiltins.__import__ = no"
    ),
    spoilt(
        "json, os, time, struct and io replaced",
        """
        import io, json, os, select, selectors, signal, socket, struct, sys, threading, time, traceback
        for module in (io, json, select, selectors, signal, socket, struct, threading, time, traceback, os):
            for name in dir(module):
                if not name.startswith('__'):
                    try:
                        setattr(module, name, lambda *a, **k: 'forged')
                    except (AttributeError, TypeError):
                        pass
        """,
    ),
    spoilt("all modules deleted", "import sys\nsys.modules.clear()"),
    spoilt("all modules replaced by None", "import sys\nfor name in list(sys.modules): sys.modules[name] = None"),
    spoilt("main deleted", "import sys\ndel sys.modules['__main__']\nglobals().clear()"),
    spoilt(
        "output that raises",
        """
        import sys
        class Broken:
            def __getattr__(self, name):
                raise RuntimeError('broken')
        sys.stdout = sys.stderr = sys.__stdout__ = sys.__stderr__ = Broken()
        """,
    ),
    spoilt("no output at all", "import sys\nsys.stdout = sys.stderr = sys.stdin = None\nprint('x')"),
    spoilt("outputs closed", "import sys\nsys.stdout.close()\nsys.stderr.close()\nsys.stdin.close()"),
    spoilt("outputs deleted", "import sys\ndel sys.stdout, sys.stderr, sys.stdin\n1 + 1"),
    spoilt(
        "display hook, except hook, audit hook",
        """
        import sys
        def no(*a):
            raise SystemExit(1)
        sys.displayhook = sys.excepthook = sys.unraisablehook = sys.breakpointhook = no
        sys.addaudithook(no)
        """,
    ),
    spoilt(
        "frames of the worker",
        """
        import sys
        frame = sys._getframe()
        while frame is not None:
            for name in list(frame.f_globals):
                if not name.startswith('__'):
                    frame.f_globals[name] = lambda *a, **k: 'forged'
            frame = frame.f_back
        """,
    ),
    spoilt(
        "every object of the heap",
        """
        import gc, types
        for thing in gc.get_objects():
            if isinstance(thing, types.FunctionType) and thing.__module__ not in ('__main__', None):
                try:
                    thing.__code__ = (lambda *a, **k: None).__code__
                except (AttributeError, ValueError, TypeError):
                    pass
        """,
        status=(*ANY, "timeout"),
        slow=True,
        timeout=3.0,
    ),
    spoilt(
        "referrers cleared",
        "import gc\nfor thing in gc.get_objects():\n    if isinstance(thing, dict):\n        thing.clear()",
        status=(*ANY, "timeout"),
        slow=True,
        timeout=3.0,
    ),
    spoilt("recursion limit one", "import sys\nsys.setrecursionlimit(5)"),
    spoilt(
        "recursion limit after",
        "import sys, threading\nthreading.Timer(0.0, lambda: sys.setrecursionlimit(1)).start()",
    ),
    spoilt("integer digits", "import sys\nsys.set_int_max_str_digits(640)\n10 ** 700"),
    spoilt(
        "a thread that raises in the main thread",
        """
        import ctypes, threading, time
        main = threading.main_thread().ident
        def nag():
            for _ in range(200):
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(main), ctypes.py_object(SystemExit))
                time.sleep(0.001)
        threading.Thread(target=nag, daemon=True).start()
        """,
    ),
    spoilt(
        "limits of its own",
        "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))\n"
        "resource.setrlimit(resource.RLIMIT_AS, (1 << 20, 1 << 20))",
    ),
    spoilt(
        "limit of CPU time",
        "import resource\nresource.setrlimit(resource.RLIMIT_CPU, (0, 0))\nwhile True: pass",
        status=("crashed", "error", "timeout"),
        timeout=3.0,
        slow=True,
    ),
    spoilt(
        "limit of file size",
        "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\nprint('x' * 100000)",
    ),
    spoilt(
        "working directory gone",
        "import os\nos.makedirs('/tmp/gone/deep')\nos.chdir('/tmp/gone/deep')\n"
        "os.rmdir('/tmp/gone/deep')\nos.rmdir('/tmp/gone')",
    ),
    spoilt("umask and modes", "import os\nos.umask(0o777)\nos.chmod('/tmp', 0)"),
    spoilt(
        "locale and encoding", "import sys\nsys.stdout.reconfigure(encoding='utf-16', errors='strict')\nprint('x')"
    ),
    spoilt(
        "memory of small integers",
        "import ctypes\nctypes.memset(id(1) + 24, 0x41, 4)\nprint(1 + 1)",
        status=(*ANY, "timeout"),
        slow=True,
        timeout=2.0,
    ),
    spoilt(
        "type slots",
        "import ctypes\nctypes.memset(id(str) + 48, 0, 200)\nstr(1)",
        status=(*ANY, "timeout"),
        slow=True,
        timeout=2.0,
    ),
    hanging(
        "trace function that loops",
        """
        import sys
        def loop(*a):
            while True:
                pass
        sys.settrace(loop)
        def f():
            pass
        f()
        """,
        after="either",
    ),
    hanging(
        "swallow everything",
        """
        while True:
            try:
                while True:
                    pass
            except BaseException:
                pass
        """,
        after="lost",
    ),
    hanging(
        "a generator whose end loops",
        """
        def endless():
            try:
                yield 1
            finally:
                while True:
                    pass
        thing = endless()
        next(thing)
        del thing
        """,
    ),
    hanging(
        "an exception whose text loops",
        """
        class Bad(Exception):
            def __str__(self):
                while True:
                    pass
            __repr__ = __str__
        raise Bad
        """,
    ),
    hanging(
        "an exception whose text swallows",
        """
        class Bad(Exception):
            def __str__(self):
                while True:
                    try:
                        while True:
                            pass
                    except BaseException:
                        pass
        raise Bad
        """,
        after="lost",
    ),
    hanging(
        "an exception whose traceback never ends",
        """
        class Chain(Exception):
            @property
            def __cause__(self):
                return Chain()
            @property
            def __context__(self):
                return Chain()
        class Loop(Exception):
            def __getattribute__(self, name):
                while True:
                    pass
        raise Loop from Chain()
        """,
        status=("timeout", "error", "out_of_memory"),
        timeout=2.0,
    ),
    hanging(
        "a last expression whose text loops",
        """
        class Bad:
            def __repr__(self):
                while True:
                    pass
        Bad()
        """,
    ),
    hanging(
        "a last expression whose text sleeps",
        """
        import time
        class Bad:
            def __repr__(self):
                time.sleep(100)
        Bad()
        """,
    ),
    hanging(
        "finalizers that loop",
        """
        class Bad:
            def __del__(self):
                while True:
                    pass
        thing = Bad()
        thing = None
        """,
    ),
    hanging(
        "callbacks of the collector",
        """
        import gc
        def loop(*a):
            while True:
                pass
        gc.callbacks.append(loop)
        gc.collect()
        """,
    ),
    hanging(
        "a finalizer when names are rebound",
        """
        class Bad:
            def __del__(self):
                Bad()
                Bad()
        def deeper():
            while True:
                Bad()
        deeper()
        """,
        status=("timeout", "crashed", "error", "out_of_memory"),
    ),
    hanging("input that never comes", "import os\nreader, writer = os.pipe()\nos.read(reader, 1)"),
    hanging("a lock taken twice", "import threading\nlock = threading.Lock()\nlock.acquire()\nlock.acquire()"),
    hanging(
        "threads that are joined",
        """
        import threading
        def loop():
            while True:
                pass
        threads = [threading.Thread(target=loop) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        """,
    ),
    hanging(
        "an interpreter that will not end, stateless",
        """
        import atexit, threading
        def loop():
            while True:
                pass
        atexit.register(loop)
        print('before', flush=True)
        """,
        language="python",
        says=("before",),
    ),
    hanging(
        "a thread that keeps the interpreter, stateless",
        """
        import threading, time
        threading.Thread(target=lambda: time.sleep(1000)).start()
        print('before', flush=True)
        """,
        language="python",
        says=("before",),
    ),
    hanging("a great power", "10 ** 10 ** 8 % 7"),
    hanging("digits of a great number", "import sys\nsys.set_int_max_str_digits(0)\nx = str(3 ** 20_000_000)"),
    hanging("a catastrophic pattern", "import re\nre.match(r'(a+)+$', 'a' * 60 + 'b')"),
    hanging("a sum in C", "sum(range(10 ** 13))"),
    hanging("a search in C", "max(iter(int, 1))"),
    hanging(
        "a compiler bomb",
        "compile('(' * 90 + '1' + ')' * 90 + '+1' * 3_000_000, 'x', 'eval')",
        status=("timeout", "error", "crashed", "out_of_memory"),
    ),
    hanging(
        "a bomb for the parser",
        "-" * 200_000 + "1",
        status=("error", "crashed", "timeout", "out_of_memory", "completed"),
    ),
    hanging(
        "brackets for the parser",
        "(" * 100_000 + ")" * 100_000,
        status=("error", "crashed", "timeout", "out_of_memory"),
    ),
    bare("exit", "exit()", status=("completed", "error", "crashed"), says=(), after="either"),
    bare("quit with a code", "quit(3)", status=("completed", "error", "crashed"), says=(), after="either"),
    bare("sys.exit", "import sys\nsys.exit(3)", status=("error",), says=("SystemExit",)),
    bare("raise SystemExit", "raise SystemExit('words')", status=("error",), says=("SystemExit",)),
    bare(
        "raise KeyboardInterrupt",
        "raise KeyboardInterrupt('mine')",
        status=("error",),
        says=("KeyboardInterrupt",),
    ),
    bare("raise GeneratorExit", "raise GeneratorExit", status=("error",), says=("GeneratorExit",)),
    bare(
        "raise MemoryError", "raise MemoryError('mine')", status=("error", "out_of_memory"), says=("MemoryError",)
    ),
    bare(
        "raise BaseException", "class Odd(BaseException): pass\nraise Odd('x')", status=("error",), says=("Odd",)
    ),
    bare("raise TimeoutError", "raise TimeoutError('mine')", status=("error",), says=("TimeoutError",)),
    bare(
        "a class that denies being raised",
        """
        class Meta(type):
            def __getattribute__(cls, name):
                raise ZeroDivisionError(name)
        class Odd(Exception, metaclass=Meta):
            pass
        raise Odd
        """,
        status=("error", "crashed"),
        says=(),
        after="either",
    ),
    bare(
        "text that is no text",
        """
        class Bad:
            def __repr__(self):
                return 5
        Bad()
        """,
        status=("error",),
        says=("TypeError",),
    ),
    bare(
        "text that raises",
        """
        class Bad:
            def __repr__(self):
                raise ValueError('deep')
        Bad()
        """,
        status=("error",),
        says=("ValueError",),
    ),
    bare(
        "text that exits",
        """
        import os
        class Bad:
            def __repr__(self):
                os._exit(0)
        Bad()
        """,
        status=("crashed",),
        says=(),
        after="lost",
    ),
    bare(
        "an exception whose text raises",
        """
        class Bad(Exception):
            def __str__(self):
                raise ValueError('deep')
            __repr__ = __str__
        raise Bad
        """,
        status=("error",),
        says=("Bad",),
    ),
    bare("a number too long to print", "10 ** 5000", status=("error",), says=("ValueError",)),
    bare(
        "thousands of chained exceptions",
        """
        def chain(depth):
            error = None
            for number in range(depth):
                try:
                    raise ValueError(number) from error
                except ValueError as found:
                    error = found
            raise error
        chain(20000)
        """,
        status=("error", "crashed", "timeout"),
        says=(),
        after="either",
        slow=True,
        timeout=5.0,
    ),
    bare("endless recursion", "def deeper(): deeper()\ndeeper()", status=("error",), says=("RecursionError",)),
]


@pytest.mark.parametrize("case", CASES, ids=lambda one: one.name)
def test_a_spoilt_interpreter_harms_only_itself(arena: Arena, case: Case) -> None:
    arena.judge(case)
