# SPDX-License-Identifier: Apache-2.0
"""A server between programs that ask a model and the model: four protocols in front, any backend behind.

A protocol is one file in `protocols/`, which reads a request into the form of `form.py` and writes the reply, whole or
as events. It serves programs of agents (`solve`) and `ns gateway`.
"""
