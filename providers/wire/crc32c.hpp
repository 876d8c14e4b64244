// SPDX-License-Identifier: BSD-2-Clause
// CRC32C (Castagnoli, reflected polynomial 0x82F63B78): the integrity check of every frame, from the sender's
// memory to the receiver's. By carry-less multiplications or the processor's own instruction where there are
// such, else by table.
#pragma once

#include <cstddef>
#include <cstdint>

namespace viaduct::wire {

// Continues a checksum: crc32c(b, crc32c(a)) is that of a followed by b. Start with 0.
uint32_t crc32c(const void* data, size_t bytes, uint32_t so_far = 0);

// That of 40 bytes, held in words as they would lie in memory, followed by memory: one call for a frame whose
// header has its check left out.
uint32_t crc32c(const uint64_t (&first)[5], const void* data, size_t bytes);

// The portable way, always there; tests compare the two.
uint32_t crc32c_by_table(const void* data, size_t bytes, uint32_t so_far = 0);

}  // namespace viaduct::wire
