# SPDX-License-Identifier: GPL-2.0-or-later
"""Provider `veth`: all ends on one machine, connected by veth in one network namespace."""
