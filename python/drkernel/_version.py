# SPDX-License-Identifier: Apache-2.0
"""The version, as CMakeLists.txt has it."""

__version__ = "0.1.0"
