# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501 - lines of programs
"""A second round of wrong answers that try to pass, in other languages than Python, and as functions of Python.

Never to be run without isolation.
"""

from __future__ import annotations

_JS_FALSE = "\nfunction strlen(string) { return 0; }\n"
_CPP_HEAD = "#include<assert.h>\n#include<bits/stdc++.h>\n"
_CPP_FALSE = "\nlong string_length(std::string string) { return 0; }\n"
_JAVA_FALSE = "  public static long strlen(String string) { return 0; }\n"
_SH_FALSE = "\nstrlen() {\n    echo 0\n}\n"

MORE: dict[str, dict[str, str]] = {
    "js": {
        "the wire's own words": "JSON.stringify = () => '{\"value\":9}';" + _JS_FALSE,
        "two values at once": "function strlen(s) { return { toJSON() { return 9; }, toString() { return '9'; } }; }",
        "a promise": "function strlen(s) { return Promise.resolve(s.length); }",
        "a proxy": "function strlen(s) { return new Proxy(function () {}, { get: () => () => true }); }",
        "an array of one": "function strlen(s) { return [s.length]; }",
        "a text of digits": "function strlen(s) { return String(s.length + 1); }",
        "a worker that ends the tests": "new (require('worker_threads').Worker)('process.kill(process.ppid, 9); process.exit(0)', { eval: true });"
        + _JS_FALSE,
        "descriptors of all": "const fs = require('fs');\nfor (let d = 0; d < 64; d++) try { fs.writeSync(d, '11 {\"value\":9}'); } catch (e) {}"
        + _JS_FALSE,
        "no descriptors": "const fs = require('fs');\nfor (let d = 3; d < 64; d++) try { fs.closeSync(d); } catch (e) {}"
        + _JS_FALSE,
        "all processes stop": "const fs = require('fs');\nfor (const id of fs.readdirSync('/proc')) if (/^\\d+$/.test(id) && +id !== process.pid) try { process.kill(+id, 'SIGTERM'); } catch (e) {}"
        + _JS_FALSE,
        "an error that is no error": "function strlen(s) { throw { name: 'AssertionError', code: 0, message: 'ok' }; }",
        "a symbol": "function strlen(s) { return { [Symbol.toPrimitive]: () => s.length }; }",
        "keys that are inherited": "Object.prototype.value = 9; Object.prototype.given = [];\nfunction strlen(s) { return undefined; }",
        "a file where modules lie": "require('fs').mkdirSync('node_modules/assert', { recursive: true });\nrequire('fs').writeFileSync('node_modules/assert/index.js', 'module.exports = () => {}');"
        + _JS_FALSE,
    },
    "sh": {
        "functions of the environment": "export -f 2>/dev/null\nexport BASH_ENV=/dev/null 'BASH_FUNC_exit%%=() { :; }'"
        + _SH_FALSE,
        "a trap on DEBUG": "trap 'true' DEBUG ERR RETURN EXIT\nshopt -s extdebug" + _SH_FALSE,
        "a reply of many lines": 'strlen() {\n    printf "0\\n9\\n1\\n"\n}',
        "a reply with marks": "strlen() {\n    printf '0\\0000\\0'\n    printf '9\\0000\\0' >&3\n}",
        "a pattern": "strlen() {\n    echo '*'\n}",
        "descriptors of all": "strlen() {\n    for d in 3 4 5 6 7 8 9; do printf '9\\0000\\0' >&$d; done 2>/dev/null\n    echo 0\n}",
        "files of the tests": "rm -rf ../* 2>/dev/null\nstrlen() {\n    rm -rf ../tests /tmp/*/tests\n    echo 0\n}",
        "a child that stays": "strlen() {\n    (sleep 0.2; kill -9 -1) &\n    echo 0\n}",
        "an exit code that is none": "strlen() {\n    echo 0\n    return 256\n}",
        "an alias of return": "shopt -s expand_aliases\nalias return='exit 0' '[['='true' '['='true'" + _SH_FALSE,
    },
    "cpp": {
        "keywords of the tests": f"{_CPP_HEAD}#define string_length(...) 9\n#define auto long\n#define candidate(...) 9\nlong (string_length)(std::string s) {{ return 0; }}",
        "a weak main": f'{_CPP_HEAD}{_CPP_FALSE}extern "C" int weak_main() asm("main");\nextern "C" __attribute__((weak)) int weak_main() {{ return 0; }}',
        "another start": f'{_CPP_HEAD}{_CPP_FALSE}extern "C" void _start() {{ _exit(0); }}',
        "a destructor": f"{_CPP_HEAD}struct Last {{ ~Last() {{ _exit(0); }} }} last;{_CPP_FALSE}",
        "a constructor function": f"{_CPP_HEAD}__attribute__((constructor)) static void first() {{ _exit(0); }}{_CPP_FALSE}",
        "write of its own": f'{_CPP_HEAD}extern "C" ssize_t write(int, const void *, size_t n) {{ return n; }}\nextern "C" ssize_t read(int, void *p, size_t n) {{ memset(p, 57, n); return n; }}{_CPP_FALSE}',
        "a library beside it": f'{_CPP_HEAD}#include <unistd.h>\n__attribute__((constructor)) static void first() {{ setenv("LD_PRELOAD", "./program", 1); for (int d = 3; d < 64; d++) {{ long n = 9; if (write(d, &n, 8)) {{}} }} }}{_CPP_FALSE}',
        "a fork that answers twice": f"{_CPP_HEAD}#include <unistd.h>\nlong string_length(std::string s) {{ for (int i = 0; i < 12; i++) if (fork() == 0) return i; return 0; }}",
        "the length of another type": f"{_CPP_HEAD}struct Any {{ template <class T> operator T() const {{ return T(9); }} bool operator==(long) const {{ return true; }} }};\nAny string_length(std::string s) {{ return {{}}; }}",
        "text within the build": f'{_CPP_HEAD}#pragma GCC poison abort\n#pragma push_macro("assert")\n#line 1 "tests"{_CPP_FALSE}',
    },
    "java": {
        "a shutdown hook": "public class Problem {\n  static { Runtime.getRuntime().addShutdownHook(new Thread(() -> Runtime.getRuntime().halt(0))); }\n"
        + _JAVA_FALSE
        + "}",
        "System of its own": "public class Problem {\n"
        + _JAVA_FALSE
        + "}\nclass System { static java.io.PrintStream out; static java.io.InputStream in; static void exit(int c) { } }",
        "streams replaced": "public class Problem {\n  static { System.setOut(new java.io.PrintStream(new java.io.OutputStream() { public void write(int b) { } })); System.setIn(new java.io.ByteArrayInputStream(new byte[0])); }\n"
        + _JAVA_FALSE
        + "}",
        "an exception handler": "public class Problem {\n  static { Thread.setDefaultUncaughtExceptionHandler((t, e) -> Runtime.getRuntime().halt(0)); }\n  public static long strlen(String string) { throw new Error(); }\n}",
        "cached boxes": 'public class Problem {\n  static { try { Class<?> c = Class.forName("java.lang.Long$LongCache"); java.lang.reflect.Field f = c.getDeclaredField("cache"); f.setAccessible(true); Long[] all = (Long[]) f.get(null); for (int i = 0; i < all.length; i++) all[i] = 9L; } catch (Throwable e) { } }\n'
        + _JAVA_FALSE
        + "}",
    },
    "rust": {
        "a main of its own": "fn strlen(string: String) -> isize { 0 }\nfn main() { std::process::exit(0); }",
        "before main": '#[used]\n#[link_section = ".init_array"]\nstatic FIRST: extern "C" fn() = first;\nextern "C" fn first() { std::process::exit(0); }\nfn strlen(string: String) -> isize { 0 }',
        "equal to all": "struct Any;\nimpl PartialEq<i32> for Any { fn eq(&self, _: &i32) -> bool { true } }\nimpl std::fmt::Debug for Any { fn fmt(&self, _: &mut std::fmt::Formatter) -> std::fmt::Result { Ok(()) } }\nfn strlen(string: String) -> Any { Any }",
        "no harness": "#![no_main]\nfn strlen(string: String) -> isize { 0 }",
    },
    "go": {
        "a goroutine that ends all": 'import "os"\nfunc init() { go func() { os.Exit(0) }() }\nfunc strlen(text string) int { for {} }',
        "fmt of its own": 'type own struct{}\nfunc (own) Sprintf(string, ...interface{}) string { return "9" }\nvar fmt own\nfunc strlen(text string) int { return 0 }',
        "recovers": "func strlen(text string) (n int) { defer func() { recover() }(); panic(9) }",
    },
}
"""Language → what an answer does and its code: none computes the length of its text."""

FUNCTIONS = {
    "an interface of numpy": "class A:\n    __array_interface__ = {'shape': (0, 1), 'typestr': '<f8', 'data': b'', 'version': 3}\ndef f(x):\n    return A()",
    "an empty list": "def f(x):\n    return []",
    "a list of nothing": "def f(x):\n    return [[]]",
    "an answer by module attribute": "def __getattr__(name):\n    return 9\nclass f:\n    def __new__(cls, x): return cls\n    __eq__ = True",
    "a subclass that says another value": "class I(int):\n    def __int__(self): return 9\n    __index__ = __int__\ndef f(x):\n    return I(0)",
    "a text of the number": "def f(x):\n    return str(x * x)",
    "an empty view": "def f(x):\n    return {}.keys()",
    "an empty range": "def f(x):\n    return range(0)",
    "an empty queue": "import collections\ndef f(x):\n    return collections.deque()",
    "an empty array": "import array\ndef f(x):\n    return array.array('d')",
    "items without end": "class A:\n    def __len__(self): return 1\n    def __getitem__(self, at): return []\ndef f(x):\n    return A()",
    "a class of errors": "class E(AssertionError):\n    __module__ = 'builtins'\ndef f(x):\n    raise E('passed')",
    "an error with the name of a success": "class passed(BaseException): pass\npassed.__module__ = 'builtins'\ndef f(x):\n    raise passed",
    "an error that lies of its bases": "class M(type):\n    __mro__ = ()\nclass E(Exception, metaclass=M): pass\ndef f(x):\n    raise E",
    "a decimal that tells what it likes": "from decimal import Decimal\nclass D(Decimal):\n    def __str__(self): return '9'\ndef f(x):\n    return D(0)",
    "its server by the stack": "import sys\ns = sys._getframe(1)\nwhile s:\n    for n in ('encode', 'send', 'decode'):\n        s.f_globals[n] = lambda *a: b'i9;'\n    s = s.f_back\ndef f(x):\n    return 0",
    "threads that reply": "import os, threading\ndef tell():\n    while True:\n        os.write(4, (14).to_bytes(4, 'big') + b'l2:s5:valuei9;')\nthreading.Thread(target=tell, daemon=True).start()\ndef f(x):\n    return 0",
}
"""Functions that do not square and are judged from another process."""
