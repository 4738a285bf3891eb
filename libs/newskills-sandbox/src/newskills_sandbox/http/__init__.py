# SPDX-License-Identifier: Apache-2.0
"""The sandbox over HTTP: what is said, a server and a client with the standard library alone."""
