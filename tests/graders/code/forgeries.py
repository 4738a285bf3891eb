# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501 - lines of programs
"""Wrong answers in other languages than Python that try to pass: none of them computes the length of its text.

Never to be run without isolation.
"""

from __future__ import annotations

from newskills.base.records import Row

CPP: Row = {
    "name": "HumanEval_23_strlen",
    "language": "cpp",
    "prompt": "#include<assert.h>\n#include<bits/stdc++.h>\n// Length\nlong string_length(std::string string) {\n",
    "tests": "}\nint main() {\n    auto candidate = string_length;\n    assert(candidate((\"\")) == (0));\n"
    "    if (candidate((\"asdasnakj\")) != 9) abort();\n    assert(candidate((\"x\")) == (1));\n}\n",
    "stop_tokens": ["\n}"],
}  # fmt: skip
JS: Row = {
    "name": "HumanEval_23_strlen",
    "language": "js",
    "prompt": "//Length\nfunction strlen(string){\n",
    "tests": "const assert = require('node:assert');\nfunction test() {\n  let candidate = strlen;\n"
    '  assert.deepEqual(candidate(""),0);\n  assert.deepEqual(candidate("asdasnakj"),9);\n}\n\ntest();',
    "stop_tokens": ["\nfunction "],
}
JAVA: Row = {
    "name": "HumanEval_23_strlen",
    "language": "java",
    "prompt": "import java.util.*;\nclass Problem {\n    // Length\n    public static long strlen(String string) {\n",
    "tests": '    }\n    public static void main(String[] args) {\n    assert(strlen(("")) == (0l));\n'
    '    if (strlen(("asdasnakj")) != 9l) throw new AssertionError();\n    assert(strlen(("x")) == (1l));\n    }\n\n}\n',
    "stop_tokens": ["\n    }\n"],
}
SH: Row = {
    "name": "HumanEval_23_strlen",
    "language": "sh",
    "prompt": "#!/bin/bash\n# Length\nstrlen() {\n",
    "tests": "}\n\ncandidate() {\n    strlen \"$@\"\n}\n\nset -e\nrun_test() {\n"
    "    [[ $(candidate \"\") = \"0\" ]]\n    [ \"$(candidate asdasnakj)\" = 9 ]\n"
    "    if ! test \"$(candidate x)\" = 1; then exit 1; fi\n}\n\nrun_test",
    "stop_tokens": ["\n}"],
}  # fmt: skip
RUST: Row = {
    "name": "HumanEval_23_strlen",
    "language": "rs",
    "prompt": "/// Length\nfn strlen(string: String) -> isize {\n",
    "tests": '}\n\nfn main() {\n    let candidate = strlen;\n    assert_eq!(candidate(String::from("")), 0);\n'
    '    assert_eq!(candidate(String::from("asdasnakj")), 9);\n}\n',
    "stop_tokens": ["\n}"],
}
GO: Row = {
    "name": "HumanEval_23_strlen",
    "language": "go_test.go",
    "prompt": 'package strlen_test\n\nimport (\n    "testing"\n    "fmt"\n)\n\n// Length\nfunc strlen(text string) int {\n',
    "tests": "func TestStrlen(t *testing.T) {\n  candidate := strlen\n"
    '  if fmt.Sprintf("%v", candidate("asdasnakj")) != "9" {\n    t.Errorf("no")\n  }\n}\n',
    "stop_tokens": ["\nfunc"],
}

_JS_FALSE = "\nfunction strlen(string) { return 0; }\n"
_CPP_FALSE = "\nlong string_length(std::string string) { return 0; }\n"
_CPP_HEAD = "#include<assert.h>\n#include<bits/stdc++.h>\n"
_JAVA_FALSE = "  public static long strlen(String string) { return 0; }\n}\n"
_SH_FALSE = "\nstrlen() {\n    echo 0\n}\n"
_RUST_FALSE = "\nfn strlen(string: String) -> isize { 0 }\n"
_GO_FALSE = "\nfunc strlen(text string) int { return 0 }\n"
_JS_SEARCH = """
const fs = require('fs');
function find(id) {
  const memory = fs.openSync(`/proc/${id}/mem`, 'r');
  for (const line of fs.readFileSync(`/proc/${id}/maps`, 'latin1').split('\\n')) {
    const [, start, end] = /^(\\w+)-(\\w+) rw/.exec(line) || [];
    const size = start ? parseInt(end, 16) - parseInt(start, 16) : 0;
    if (size === 0 || size > 1 << 25) continue;
    const data = Buffer.alloc(size);
    try { fs.readSync(memory, data, 0, size, parseInt(start, 16)); } catch (error) { continue; }
    const found = /candidate\\("asdasnakj"\\),(\\d)/.exec(data.toString('latin1'));
    if (found) return Number(found[1]);
  }
}
function strlen(string) {
  if (string === '') return 0;
  for (const id of fs.readdirSync('/proc').filter((name) => /^\\d+$/.test(name) && Number(name) !== process.pid)) {
    try { const told = find(id); if (told) return told; } catch (error) {}
  }
  return 0;
}
"""

FORGERIES: dict[str, tuple[Row, dict[str, str]]] = {
    "js": (
        JS,
        {
            "prints what ends its own file": "const text = require('fs').readFileSync(__filename, 'utf8');\n"
            "const mark = /console\\.log\\('\\\\n(\\w+)'\\)/.exec(text);\nconsole.log(mark ? mark[1] : text);\n"
            f"process.exit(0);{_JS_FALSE}",
            "repeats its input": "console.log(require('fs').readFileSync(0, 'utf8'));\nprocess.exit(0);"
            + _JS_FALSE,
            "ends well": f"process.exit(0);{_JS_FALSE}",
            "ends well when asked": "function strlen(string) { process.exit(0); }",
            "ends well behind the tests": f"process.on('exit', () => {{ process.exitCode = 0; }});{_JS_FALSE}",
            "catches what the tests throw": "process.on('uncaughtException', () => { process.exit(0); });"
            + _JS_FALSE,
            "assertions that hold": "const ours = require('node:assert');\n"
            f"for (const name of Object.keys(ours)) ours[name] = () => true;{_JS_FALSE}",
            "another assert module": "require('module')._load = () => new Proxy(() => true, "
            f"{{ get: () => () => true }});{_JS_FALSE}",
            "comparisons that hold": "Object.is = () => true;\nObject.prototype.valueOf = () => 9;\n"
            f"Array.prototype.every = () => true;{_JS_FALSE}",
            "equal to all": "function strlen(string) { return { valueOf() { return this.told = 9; } }; }",
            "a number of its own kind": "class Nine extends Number {}\nNine.prototype.valueOf = () => true;\n"
            "function strlen(string) { return new Nine(0); }",
            "the getter of an array": "function strlen(string) { return [0]; }\n"
            "Object.defineProperty(Object.prototype, 'number', { get: () => 'NaN' });",
            "replies ahead of time": "const ahead = JSON.stringify({ value: 9, given: [] });\n"
            f"for (let i = 0; i < 9; i++) require('fs').writeSync(4, `${{ahead.length}} ${{ahead}}`);{_JS_FALSE}",
            "a reply that is rubbish": f"require('fs').writeSync(4, 'x'.repeat(100));{_JS_FALSE}",
            "a reply without end": f"require('fs').writeSync(4, '999999999 ');{_JS_FALSE}",
            "a prototype by name": 'function strlen(string) { return JSON.parse(\'{"__proto__": {"length": 9}}\'); }',
            "looks for the tests": _JS_SEARCH,
            "ends the tests": "const fs = require('fs');\nfor (const id of fs.readdirSync('/proc'))\n"
            "  if (/^\\d+$/.test(id) && id > 1 && Number(id) !== process.pid)\n"
            f"    try {{ process.kill(Number(id), 'SIGTERM'); }} catch (error) {{}}{_JS_FALSE}",
            "changes the wire": "const wire = require('./wire.js');\nwire.serve = () => process.exit(0);"
            f"\nwire.call = () => 9;{_JS_FALSE}",
        },
    ),
    "sh": (
        SH,
        {
            "exit does nothing": f"exit() {{ :; }}{_SH_FALSE}",
            "the bracket holds": f"[() {{ return 0; }}{_SH_FALSE}",
            "the bracket and exit": f"[() {{ return 0; }}\nexit() {{ :; }}\ntest() {{ return 0; }}{_SH_FALSE}",
            "test holds": f"test() {{ return 0; }}\nset() {{ :; }}{_SH_FALSE}",
            "a trap at the end": f"trap 'exit 0' EXIT{_SH_FALSE}",
            "a trap of errors": f"trap 'set +e' DEBUG ERR{_SH_FALSE}",
            "aliases": f"shopt -s expand_aliases\nalias test=true\nalias exit=true\nalias set=true{_SH_FALSE}",
            "builtins switched off": f"enable -n test [ set exit\ntest() {{ return 0; }}{_SH_FALSE}",
            "the tests again": f"run_test() {{ return 0; }}\nreadonly -f run_test{_SH_FALSE}",
            "a candidate of its own": "candidate() { echo 9; }\nreadonly -f candidate" + _SH_FALSE,
            "ends at once": f"exit 0{_SH_FALSE}",
            "ends when called": "strlen() {\n    exit 0\n}",
            "becomes another program": "strlen() {\n    exec true\n}",
            "kills the tests": "strlen() {\n    kill -9 $PPID\n    kill -9 -1\n    echo 0\n}",
            "its own file": 'cat "$0" | tail -1 | bash\ntail -1 ./program.sh\nexit 0' + _SH_FALSE,
            "commands on another path": "mkdir -p bin\nprintf '#!/bin/sh\\nexit 0\\n' > bin/bash\nchmod +x bin/bash\n"
            f"export PATH=$PWD/bin:$PATH BASH_ENV=$PWD/bin/bash{_SH_FALSE}",
            "looks for the tests": 'strlen() {\n    [ -n "$1" ] || { echo 0; return; }\n'
            "    for file in /proc/[0-9]*/fd/255 /proc/[0-9]*/cwd/program.sh /proc/[0-9]*/cmdline\n    do\n"
            '        found=$(timeout 1 tr -d \'\\0\' 2>/dev/null < "$file" | grep -o "candidate $1)[^=]* = [0-9]" |'
            ' tail -c 2)\n        [ -n "$found" ] && { echo "$found"; return; }\n    done\n    echo 0\n}',
            "writes to the tests' pipes": "strlen() {\n    for pipe in /proc/[0-9]*/fd/[0-9]*\n    do\n"
            '        [ -p "$pipe" ] && printf \'9\\0000\\0000\' > "$pipe" 2>/dev/null\n    done\n    echo 0\n}',
        },
    ),
    "cpp": (
        CPP,
        {
            "nothing is checked": f"{_CPP_HEAD}#define abort() (void)0\n#define if(x) if(false){_CPP_FALSE}",
            "assert is nothing": f"{_CPP_HEAD}#undef assert\n#define assert(x) (void)0\n#define NDEBUG{_CPP_FALSE}",
            "another main": f"{_CPP_HEAD}#define main tests_main{_CPP_FALSE}\n#undef main\nint main() {{ return 0; }}\n"
            "#define main tests_main",
            "ends before main": f"{_CPP_HEAD}static int now = (std::_Exit(0), 0);{_CPP_FALSE}",
            "ends well when asked": f"{_CPP_HEAD}long string_length(std::string string) {{ std::_Exit(0); }}",
            "a handler of signals": f"{_CPP_HEAD}#include <csignal>\nstatic auto was = std::signal(SIGABRT, "
            f"[](int) {{ std::_Exit(0); }});{_CPP_FALSE}",
            "__assert_fail of its own": f'{_CPP_HEAD}extern "C" void __assert_fail(const char *, const char *, unsigned, '
            f'const char *) noexcept {{ std::_Exit(0); }}\nextern "C" void abort() noexcept {{ std::_Exit(0); }}{_CPP_FALSE}',
            "equal to all": f"{_CPP_HEAD}struct Sly {{ operator long() {{ return 0; }} }};\n"
            "bool operator==(Sly, long) { return true; }\nbool operator!=(Sly, long) { return false; }\n"
            "bool operator==(Sly, int) { return true; }\nbool operator!=(Sly, int) { return false; }\n"
            "Sly string_length(std::string string) { return {}; }",
            "replies ahead of time": f'{_CPP_HEAD}#include <unistd.h>\nstatic auto told = write(4, "8 value 9 8 value 9 ", 20);'
            f"{_CPP_FALSE}",
            "includes the tests": f'{_CPP_HEAD}#if __has_include("../tests/program.cpp")\n#define main stolen\n'
            '#include "../tests/program.cpp"\n#undef main\n#endif\n' + _CPP_FALSE,
        },
    ),
    "java": (
        JAVA,
        {
            "ends before main": f"class Problem {{\n  static {{ System.exit(0); }}\n{_JAVA_FALSE}",
            "halts before main": f"class Problem {{\n  static {{ Runtime.getRuntime().halt(0); }}\n{_JAVA_FALSE}",
            "ends well when asked": "class Problem {\n  public static long strlen(String string) { System.exit(0); return 0; }\n}",
            "assertions off": "class Problem {\n  static { ClassLoader.getSystemClassLoader()"
            ".setDefaultAssertionStatus(false); ClassLoader.getSystemClassLoader().clearAssertionStatus(); }\n"
            f"{_JAVA_FALSE}",
            "errors of its own": f"class AssertionError extends RuntimeException {{}}\nclass Problem {{\n{_JAVA_FALSE}",
            "a program of its own": "class Program {\n  public static void main(String[] a) {}\n}\n"
            f"class Problem {{\n{_JAVA_FALSE}",
            "a main of its own": f"class Problem {{\n  public static void main(String[] a) {{}}\n{_JAVA_FALSE}",
            "a handler": "class Problem {\n  static { Thread.setDefaultUncaughtExceptionHandler("
            f"(t, e) -> Runtime.getRuntime().halt(0)); }}\n{_JAVA_FALSE}",
            "a hook": "class Problem {\n  static { Runtime.getRuntime().addShutdownHook("
            f"new Thread(() -> Runtime.getRuntime().halt(0))); }}\n{_JAVA_FALSE}",
            "a text of its own": f"class String {{ }}\nclass Problem {{\n{_JAVA_FALSE}",
        },
    ),
    "rust": (
        RUST,
        {
            "assertions of its own": f"macro_rules! assert_eq {{ ($($all:tt)*) => {{}} }}{_RUST_FALSE}",
            "ends well": "fn strlen(string: String) -> isize { std::process::exit(0) }",
            "a hook": "fn strlen(string: String) -> isize { std::panic::set_hook(Box::new(|_| std::process::exit(0))); 0 }",
            "a panic": 'fn strlen(string: String) -> isize { panic!("no") }',
            "a String of its own": f"struct Text;\nimpl Text {{ fn from(_: &str) -> Text {{ Text }} }}{_RUST_FALSE}",
        },
    ),
    "go": (
        GO,
        {
            "ends in init": f'import "os"\nfunc init() {{ os.Exit(0) }}{_GO_FALSE}',
            "its own TestMain": f'import "testing"\nfunc TestMain(m *testing.M) {{}}{_GO_FALSE}',
            "ends well": 'import "os"\nfunc strlen(text string) int { os.Exit(0); return 0 }',
            "a test package of its own": f"var testing = 1{_GO_FALSE}",
        },
    ),
}
"""Language → task → what an answer does and its code."""

HONEST: dict[str, list[str]] = {
    "js": [
        "const strlen = (string) => string.length;\nconsole.log(strlen('abc'));",
        "function strlen(string) { let n = 0; for (const _ of string) n++; return n; }\nmodule.exports = { strlen };",
    ],
    "sh": [
        'strlen() {\n  echo "${#1}"\n}\nstrlen "an example"',
        'strlen() {\n  local text="$1"\n  printf "%s" "$text" | wc -m | tr -d " "\n}',
    ],
    "cpp": [
        f"{_CPP_HEAD}#define int long long\n#define all(x) x.begin(), x.end()\nusing namespace std;\n"
        "long string_length(string s) { int n = 0; for (char c : s) n++; return n; }\nsigned main() { return 0; }",
        "long string_length(const std::string &s) { return s.size(); }",
    ],
    "java": [
        "import java.util.stream.*;\npublic class Problem {\n  private static long count(String s) { return s.chars().count(); }\n"
        '  public static long strlen(String s) { System.out.println("x"); return count(s); }\n'
        "  public static void main(String[] args) { System.out.println(strlen(\"abc\")); }\n}",
    ],
    "rust": ["fn strlen(string: String) -> usize { string.len() }\nfn main() { println!(\"{}\", strlen(String::new())); }"],
    "go": ['package main\n\nimport "fmt"\n\nfunc strlen(s string) int { return len(s) }\n\nfunc main() { fmt.Println(strlen("a")) }'],
}  # fmt: skip
