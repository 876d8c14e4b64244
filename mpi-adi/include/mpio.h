// SPDX-License-Identifier: BSD-2-Clause
/* mpio.h: programs that use files include it by its old name; all of it is in mpi.h. */
#pragma once

#include "mpi.h"
