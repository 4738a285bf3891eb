# SPDX-License-Identifier: Apache-2.0
"""The ground floor: nouns, protocols, errors, registry, store. Imports nothing above itself."""
