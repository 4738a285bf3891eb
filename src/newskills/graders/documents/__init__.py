# SPDX-License-Identifier: Apache-2.0
"""Pages of documents as Markdown: parts of a reply, their pairs with the parts of a page, distances of both."""
