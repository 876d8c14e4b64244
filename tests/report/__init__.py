# SPDX-License-Identifier: BSD-2-Clause
"""How the test runs are judged: runners of rows import report.rows from here."""
