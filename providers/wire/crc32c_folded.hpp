// SPDX-License-Identifier: BSD-2-Clause
// CRC32C by folding (V. Gopal and others, "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ
// Instruction", Intel 2009): four vectors of 64 bytes are carried over the data by carry-less
// multiplications, which cost a third of what the checksum's own instruction does with frames of 9000 bytes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace viaduct::wire {

// Fewer bytes are not worth it, and crc32c_folded does not take them.
inline constexpr size_t kFoldedFrom = 256;

// The processor has what crc32c_folded needs: AVX-512, VPCLMULQDQ and SSE4.2.
bool can_fold_crc32c();

// The register (not complemented) after `bytes` bytes, at least kFoldedFrom, that find it at `start`.
// *taken: of how many it is; the rest, less than 64, is left to the caller.
uint32_t crc32c_folded(const void* data, size_t bytes, uint32_t start, size_t* taken);

}  // namespace viaduct::wire
