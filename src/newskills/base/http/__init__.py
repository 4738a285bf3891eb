# SPDX-License-Identifier: Apache-2.0
"""HTTP/1.1 over asyncio and httptools for every room: a client with a keep-alive pool and a small server.

Import the modules themselves; this package imports nothing.
"""
