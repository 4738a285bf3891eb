# SPDX-License-Identifier: Apache-2.0
"""The options of `ns start_server`."""

from __future__ import annotations

from typing import Annotated

from newskills.pipelines.options import ModelOptions, doc


class StartServerOptions(ModelOptions, frozen=True, kw_only=True):
    port: Annotated[int, doc("port to serve on; 0 = a free one")] = 0
    get_random_port: Annotated[bool, doc("a free port, which is the default")] = False
    host: Annotated[str | None, doc("interface to bind (llamacpp: this machine only; engines for GPUs: all)")] = (
        None
    )
    create_tunnel: Annotated[bool, doc("reach the server of a cluster at a port of this machine, through ssh")] = (
        False
    )
    server_tunnel_port: Annotated[int, doc("that port")] = 5000
    sandbox_tunnel_port: Annotated[int, doc("the same for the sandbox")] = 6000
    launch_chat_interface: Annotated[
        bool, doc("also a page to chat with the model in the browser, at http://127.0.0.1:7860")
    ] = False
    extra_chat_args: Annotated[
        str,
        doc(
            "settings of that page: ++port, ++host, ++system_message, ++temperature, ++top_p, ++tokens_to_generate"
        ),
    ] = ""
