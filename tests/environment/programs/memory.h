/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

#include <stddef.h>

/*
 * Memory of the kind that ENVIRONMENT_MEMORY names ("" or none: of the program's allocator), page aligned, zeroed.
 * Ends the program with 77 where the system has no such memory.
 */
void* memory_of_kind(size_t bytes);
