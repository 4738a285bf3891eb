# SPDX-License-Identifier: Apache-2.0
"""What `ssh` says when it cannot connect → one sentence and the next thing to type."""

from __future__ import annotations

import re

from newskills.base.errors import RemoteError

QUIET_HINT = (
    "rsync reads that as its own data and fails: let ~/.bashrc (.zshenv, .cshrc) there print only in "
    "interactive sessions, after: [[ $- == *i* ]] || return"
)
"""What to do about a login shell that prints something before any command."""


def connection_error(name: str, output: str) -> RemoteError:
    """Describe what `ssh` said in one sentence, with the next step."""
    for pattern, sentence, hint in _REASONS:
        if match := re.search(pattern, output, re.IGNORECASE):
            return RemoteError(sentence.format(name=name, found=match[0]), hint=hint.format(name=name))
    reason = last_line(output)
    return RemoteError(f"Cannot reach {name}: {reason}", hint=f"Does `ssh {name} true` work?")


_REASONS = (
    (
        r"REMOTE HOST IDENTIFICATION HAS CHANGED|host key for .* has changed",
        "The host key of {name} has changed.",
        "Ask its administrators; if the change is intended, ssh-keygen -R HOST removes the old key.",
    ),
    (
        r"Host key verification failed|No .* host key is known",
        "The host key of {name} is not known yet.",
        "Run `ssh {name}` once and accept it.",
    ),
    (r"Too many authentication failures", "ssh offered too many keys to {name}.", "Set ssh_tunnel.identity."),
    (
        r"Permission denied \([^)]*\)",
        "{name} refused the login: {found}.",
        "Does `ssh {name} true` work? Set ssh_tunnel.user or ssh_tunnel.identity, or ssh-add your key.",
    ),
    (
        r"Could not resolve hostname",
        "The host {name} is unknown, both in the ssh config and in the network.",
        "Check ssh_tunnel.host.",
    ),
    (
        r"timed out|timeout, server",
        "{name} does not answer: the connection timed out.",
        "Is the VPN up? Does `ssh {name} true` work?",
    ),
    (
        r"Connection refused",
        "{name} refuses connections.",
        "Check ssh_tunnel.port; does an ssh server run there?",
    ),
    (
        r"No route to host|Network is unreachable",
        "{name} cannot be reached over the network: {found}.",
        "Is the VPN up?",
    ),
    (
        r"Bad owner or permissions on .*",
        "ssh refuses its files because of their permissions: {found}.",
        "Run chmod 600 on that file.",
    ),
    (r"Bad configuration option: .*", "The ssh config is not valid: {found}.", "Try: ssh -G {name}"),
    (
        r"Can't open user config file .*",
        "The ssh config file cannot be opened: {found}.",
        "Check NEWSKILLS_SSH_CONFIG.",
    ),
    (
        r"Connection closed by|Connection reset|Broken pipe|closed by remote host",
        "The connection to {name} broke.",
        "Run the same command again.",
    ),
)


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if lines:
        shown = "".join(ch if ch.isprintable() else " " for ch in lines[-1])
    else:
        shown = "it printed nothing"
    return shown[:300].rstrip(".") + "."
