# SPDX-License-Identifier: Apache-2.0
"""The player of environments of the package `verifiers`: a chat with the environment's own tools, in this process.

The package's usual player is a program with a shell on the machine itself; this one has nothing but the tools that the
environment serves. Imported only where the package is installed.
"""

from __future__ import annotations

import json
from contextlib import AsyncExitStack
from typing import Any

import httpx
from verifiers.v1 import Harness, HarnessConfig
from verifiers.v1.dialects.chat import message_to_wire
from verifiers.v1.harnesses.utils.mcp import call_mcp, connect_mcp
from verifiers.v1.runtimes import ProgramResult

from newskills.base.records import Row

__all__ = ["ChatHarness", "ChatHarnessConfig"]


WAIT = httpx.Timeout(None, connect=30.0)
"""The run waits for its model as long as ++inference.timeout says."""


class ChatHarnessConfig(HarnessConfig):  # type: ignore[misc]
    """None of its own."""


class ChatHarness(Harness[ChatHarnessConfig]):  # type: ignore[misc]
    """Asks at the endpoint that the package names until a reply calls no tool."""

    APPENDS_SYSTEM_PROMPT = True
    SUPPORTS_MCP = True
    SUPPORTS_RESUME = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: Any,
        trace: Any,
        runtime: Any,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: Any,
    ) -> Any:
        """Play the task, and return a `ProgramResult`: 0, or 1 with what the endpoint said against a request."""
        system, prompt = self.resolve_prompt(data)
        messages: list[Row] = [{"role": "system", "content": system}] if system else []
        if isinstance(prompt, str):
            messages.append({"role": "user", "content": prompt})
        else:
            messages += [message_to_wire(message) for message in prompt or ()]
        spec = {name: {"url": url, "timeout": self.config.tool_timeout} for name, url in mcp_urls.items()}
        async with AsyncExitStack() as stack:
            tools, dispatch, servers = await connect_mcp({"mcpServers": spec}, stack)
            client = await stack.enter_async_context(
                httpx.AsyncClient(timeout=WAIT, headers={"Authorization": f"Bearer {secret}"}, trust_env=False)
            )
            while True:
                body = {"model": ctx.model, "messages": messages, **({"tools": tools} if tools else {})}
                answer = await client.post(f"{endpoint}/chat/completions", json=body)
                if answer.status_code != 200:
                    return ProgramResult(1, "", answer.text)
                message = answer.json()["choices"][0]["message"]
                messages.append(message)
                if not message.get("tool_calls"):
                    return ProgramResult(0, "", "")
                for call in message["tool_calls"]:
                    content = await _call_tool(servers, dispatch, call["function"])
                    messages.append({"role": "tool", "tool_call_id": call["id"], "content": content})


async def _call_tool(servers: Any, dispatch: Row, function: Row) -> Any:
    """Call the tool, and return what it gives back; mistakes of the model are told to it."""
    name = function["name"]
    if name not in dispatch:
        return f"Error: there is no tool '{name[:100]}'. Tools: {', '.join(dispatch) or 'none'}."
    try:
        arguments = json.loads(function["arguments"] or "{}")
    except ValueError as error:
        return f"Error: the arguments are no valid JSON ({error})."
    if not isinstance(arguments, dict):
        return "Error: the arguments must be a JSON object."
    return await call_mcp(servers, dispatch, name, arguments)
