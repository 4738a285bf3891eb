# SPDX-License-Identifier: Apache-2.0
"""The options of `ns start_server`."""

from __future__ import annotations

from typing import Annotated

from newskills.pipelines.options import ModelOptions, doc


class StartServerOptions(ModelOptions, frozen=True, kw_only=True):
    port: Annotated[int, doc("port to serve on; 0 = any free port")] = 0
    get_random_port: Annotated[bool, doc("use any free port (the default)")] = False
    host: Annotated[
        str | None, doc("network interface to listen on (default: llamacpp: this machine only; GPU engines: all)")
    ] = None
    create_tunnel: Annotated[bool, doc("open an ssh tunnel from this machine to the server on the cluster")] = (
        False
    )
    server_tunnel_port: Annotated[int, doc("local port of the tunnel to the server")] = 5000
    sandbox_tunnel_port: Annotated[int, doc("local port of the tunnel to the sandbox")] = 6000
    launch_chat_interface: Annotated[
        bool, doc("also serve a page to chat with the model in the browser, at http://127.0.0.1:7860")
    ] = False
    extra_chat_args: Annotated[
        str,
        doc(
            "settings of the chat page: ++port, ++host, ++system_message, ++temperature, ++top_p, "
            "++tokens_to_generate"
        ),
    ] = ""
