// SPDX-License-Identifier: BSD-2-Clause
// The address of an end of a connection as people see it: "02:00:...:01/discriminator".
#pragma once

#include <string>

#include "viaduct/types.hpp"

namespace viaduct {

std::string text_of(const EndAddress&);

}  // namespace viaduct
