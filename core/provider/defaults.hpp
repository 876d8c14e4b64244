// SPDX-License-Identifier: BSD-2-Clause
// What an operation does that a provider does not have. Used by the loader alone.
#pragma once

#include "viaduct/provider.hpp"

namespace viaduct {

// Fills every null operation with one that answers "not supported", or does nothing where there is no answer.
void fill_missing_operations(Provider* provider);

}  // namespace viaduct
