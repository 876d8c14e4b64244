// SPDX-License-Identifier: BSD-2-Clause
// The copies of this provider are those of every provider.
#pragma once

#include "core/copy/copy.hpp"
