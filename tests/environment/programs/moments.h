/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

#include "end.h"

/*
 * What a program does to itself or to its agent while it is connected. Returns in the process that goes on with the
 * connection; "" does nothing.
 */
void moment_pass(const char* name, struct end* end);
/* What can only be judged at the end: ends the program when it is wrong. */
void moment_judge(void);
