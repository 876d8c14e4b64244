// SPDX-License-Identifier: BSD-2-Clause
// Handles of the MPICH ABI and the tables that turn them into objects. A handle is an int: bits 30-31 say null,
// built-in or made at run time, bits 26-29 the kind of object; below are, for ours, 6 bits of generation and 20 of
// index. Lookups take no lock; add() and remove() are called with the lock of the table held: the engine's, or AnyTime.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace viaduct::mpi {

enum class HandleType : unsigned {
    comm = 1,
    group = 2,
    datatype = 3,
    errhandler = 5,
    op = 6,
    info = 7,
    win = 8,
    keyval = 9,
    request = 11,
    session = 14
};

enum class HandleKind : unsigned { null = 0, builtin = 1, direct = 2, indirect = 3 };

constexpr HandleKind handle_kind(int handle) { return HandleKind(unsigned(handle) >> 30); }
constexpr unsigned handle_type(int handle) { return (unsigned(handle) >> 26) & 15; }
constexpr unsigned handle_low(int handle) { return unsigned(handle) & 0x03ffffff; }
constexpr bool is_builtin(int handle, HandleType type) {
    return handle_kind(handle) == HandleKind::builtin && handle_type(handle) == unsigned(type);
}

// Objects of one kind by handle. The generation makes a handle that was freed differ from its successor in the same
// slot, so that using it again is an error and not another object. Without generations the object made next gets the
// handle freed last, as it does in MPICH.
template <typename T, HandleType type, bool generations = true>
class ObjectTable {
  public:
    // The handle of an object that the caller keeps alive until remove().
    int add(T* object) {
        if (free_.empty()) {
            grow();
        }
        uint32_t index = free_.back();
        free_.pop_back();
        Slot& slot = slot_at(index);
        slot.object.store(object, std::memory_order_release);
        ++live_;
        return encode(index, slot.generation);
    }

    // The same with its handle set, for an object that lives until remove(). It is released when there is no room.
    T* keep(std::unique_ptr<T> object) {
        object->handle = add(object.get());
        return object.release();
    }

    // The object of a handle, or null when there is none (any more).
    T* find(int handle) const {
        if ((unsigned(handle) >> 26) != kPrefix) {
            return nullptr;
        }
        uint32_t index = unsigned(handle) & kIndexMask;
        const Chunk* chunk = chunks_[index / kChunk].load(std::memory_order_acquire);
        if (!chunk) {
            return nullptr;
        }
        const Slot& slot = (*chunk)[index % kChunk];
        return slot.generation == ((unsigned(handle) >> kIndexBits) & kGenerationMask)
                   ? slot.object.load(std::memory_order_acquire)
                   : nullptr;
    }

    T* remove(int handle) {
        T* object = find(handle);
        if (object) {
            uint32_t index = unsigned(handle) & kIndexMask;
            Slot& slot = slot_at(index);
            slot.object.store(nullptr, std::memory_order_release);
            slot.generation = (slot.generation + (generations ? 1 : 0)) & kGenerationMask;
            free_.push_back(index);
            --live_;
        }
        return object;
    }

    // Calls it for each object, in the order of their places.
    template <typename Each>
    void for_each(Each&& each) const {
        for (uint32_t index = 0; index < count_; ++index) {
            const Chunk* chunk = chunks_[index / kChunk].load(std::memory_order_acquire);
            if (T* object = (*chunk)[index % kChunk].object.load(std::memory_order_acquire)) {
                each(*object);
            }
        }
    }

    // How many objects there are: what a program has not freed.
    size_t live() const { return live_; }

    ~ObjectTable() {
        for (auto& chunk : chunks_) {
            delete chunk.load(std::memory_order_relaxed);
        }
    }

  private:
    static constexpr unsigned kIndexBits = 20;
    static constexpr unsigned kIndexMask = (1u << kIndexBits) - 1;
    static constexpr unsigned kGenerationMask = 63;
    static constexpr unsigned kChunk = 1024;
    static constexpr unsigned kPrefix = (unsigned(HandleKind::indirect) << 4) | unsigned(type);

    struct Slot {
        std::atomic<T*> object{nullptr};
        uint32_t generation = 0;
    };
    using Chunk = std::array<Slot, kChunk>;

    static int encode(uint32_t index, uint32_t generation) {
        return int((kPrefix << 26) | (generation << kIndexBits) | index);
    }
    Slot& slot_at(uint32_t index) {
        return (*chunks_[index / kChunk].load(std::memory_order_relaxed))[index % kChunk];
    }
    void grow() {
        if (count_ > kIndexMask) {
            throw std::bad_alloc();
        }
        // First everything that can fail: half a chunk in free_ would let the next call replace the chunk that those
        // indices are in. With room for every index, remove() cannot fail either.
        free_.reserve(count_ + kChunk);
        chunks_[count_ / kChunk].store(new Chunk(), std::memory_order_release);
        for (uint32_t i = kChunk; i-- > 0;) {
            free_.push_back(count_ + i);
        }
        count_ += kChunk;
    }

    std::array<std::atomic<Chunk*>, (kIndexMask + 1) / kChunk> chunks_{};
    std::vector<uint32_t> free_;
    uint32_t count_ = 0;
    size_t live_ = 0;
};

}  // namespace viaduct::mpi
