# SPDX-License-Identifier: Apache-2.0
"""From a config file, a profile and a command line to a `CompiledConfig`."""
