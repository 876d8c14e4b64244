// SPDX-License-Identifier: BSD-2-Clause
// Datatypes. A derived one is `repeats` times, `stride` apart, a list of parts; from that its bounds follow and its
// flattened form: strided runs of bytes in the order of the type map, which pack() and unpack() walk.
// Immutable once made (name and attributes apart), shared by reference count.
#pragma once

#include <mpi.h>

#include <array>
#include <atomic>
#include <span>
#include <string>
#include <vector>

#include "mpi-adi/engine/attribute.hpp"
#include "mpi-adi/engine/layout.hpp"
#include "mpi-adi/transport/adi/cmpi_adi.h"

namespace viaduct::mpi {

// `count` pieces of `length` bytes, `stride` apart, the first at `offset`; `packed` bytes of the item lie before them.
struct Run {
    MPI_Aint offset;
    MPI_Aint length;
    MPI_Count count;
    MPI_Aint stride;
    MPI_Count packed;
};

enum class BasicClass : unsigned char {
    none, signed_integer, unsigned_integer, floating, complex, logical, byte, character, pair, marker_lb, marker_ub
};

class Datatype final : public mpip_type, public Layout {
  public:
    struct Part {
        MPI_Aint offset;
        MPI_Count blocklength;
        const Datatype* type;
    };
    // What MPI_Type_get_envelope and _contents give back.
    struct Contents {
        int combiner = MPI_COMBINER_NAMED;
        std::vector<int> integers;
        std::vector<MPI_Aint> addresses;
        std::vector<MPI_Datatype> types;
        std::vector<MPI_Count> large_counts;  // of a type made by a function for large counts
    };

    void pack(const void* base, uint64_t count, uint64_t offset, uint64_t length, void* out) const override;
    void unpack(void* base, uint64_t count, uint64_t offset, uint64_t length, const void* in) const override;
    void retain() const override { references_.fetch_add(1, std::memory_order_relaxed); }
    void release() const override;

    // Those of MPI_Type_create_f90_*: a program gets the same one for the same arguments, as if it were built in.
    bool is_never_freed() const {
        return contents.combiner == MPI_COMBINER_F90_REAL || contents.combiner == MPI_COMBINER_F90_COMPLEX ||
               contents.combiner == MPI_COMBINER_F90_INTEGER;
    }
    MPI_Aint extent() const { return ub - lb; }
    MPI_Aint true_extent() const { return true_ub - true_lb; }

    MPI_Datatype handle = MPI_DATATYPE_NULL;
    MPI_Count size = 0;      // bytes of data
    MPI_Count elements = 0;  // basic types in it
    MPI_Aint lb = 0, ub = 0, true_lb = 0, true_ub = 0;
    int alignment = 1;
    bool sticky_lb = false, sticky_ub = false;  // set by MPI_LB, MPI_UB or a resize: natural bounds no longer count
    bool contiguous = false;  // `count` items are size * count bytes in one piece, from true_lb on
    bool builtin = false;
    mutable bool committed = false;
    BasicClass basic = BasicClass::none;

    MPI_Count repeats = 1;
    MPI_Aint stride = 0;
    std::vector<Part> parts;
    std::vector<Run> runs;
    Contents contents;
    std::string name;
    AttributeSet attributes;

    Datatype();
    ~Datatype();
    // Tells the transports what they need: after size and contiguous are known.
    void seal();

  private:
    mutable std::atomic<int> references_{1};
};

// The type of a handle, or null. Built-in ones are always there.
const Datatype* type_of(MPI_Datatype handle);
Datatype* mutable_type_of(MPI_Datatype handle);

// Whether a handle is one of the types of one basic element, whose size its bits 8-15 give.
constexpr bool is_basic_handle(MPI_Datatype handle) { return (unsigned(handle) & 0xffff0000u) == 0x4c000000u; }
constexpr int basic_handle_size(MPI_Datatype handle) { return (handle >> 8) & 0xff; }

// What hot paths ask of those types without looking for them; each stands where its handle's last byte says.
struct BasicItem {
    MPI_Datatype handle = MPI_DATATYPE_NULL;
    BasicClass basic = BasicClass::none;
};
extern const std::array<BasicItem, 256> basic_items;
// None for all other types and handles, and for those without data.
inline BasicClass basic_class(MPI_Datatype handle) {
    const BasicItem& item = basic_items[handle & 0xff];
    return item.handle == handle ? item.basic : BasicClass::none;
}

// The makers behind the MPI constructors; arguments have been checked. They return a type with one reference, without a
// handle and contents.
Datatype* make_repeated(MPI_Count count, MPI_Count blocklength, MPI_Aint stride, const Datatype& old);
Datatype* make_blocks(std::vector<Datatype::Part> parts, bool pad_to_alignment);
Datatype* make_resized(const Datatype& old, MPI_Aint lb, MPI_Aint extent);
Datatype* make_subarray(std::span<const MPI_Count> sizes, std::span<const MPI_Count> subsizes,
                        std::span<const MPI_Count> starts, int order, const Datatype& old);
[[nodiscard]] int make_darray(int size, int rank, std::span<const MPI_Count> gsizes, std::span<const int> distributions,
                              std::span<const int> arguments, std::span<const int> processes, int order,
                              const Datatype& old, Datatype** made);

// Gives the type a handle and stores how it was made.
MPI_Datatype type_publish(Datatype* type, Datatype::Contents contents);
[[nodiscard]] int type_free(MPI_Datatype* handle);

// How many basic elements `bytes` bytes of items of this type hold; -1 when they end inside an element.
MPI_Count count_elements(const Datatype& type, MPI_Count bytes);
// How many bytes the first `elements` basic elements of items of this type take.
MPI_Count bytes_of_elements(const Datatype& type, MPI_Count elements);

// Calls visit(basic type, place, n) for the basic elements of one item at `base`, in the order of the type map.
// Places are numbers: some ask only what the elements are, and lower bounds may be negative.
template <typename Visit>
void for_each_basic(const Datatype& type, MPI_Aint base, Visit&& visit) {
    if (type.basic != BasicClass::none && type.basic != BasicClass::pair) {
        visit(type, base, MPI_Count(1));
        return;
    }
    for (MPI_Count r = 0; r < type.repeats; ++r) {
        for (const Datatype::Part& part : type.parts) {
            MPI_Aint at = base + r * type.stride + part.offset;
            if (part.type->basic != BasicClass::none && part.type->basic != BasicClass::pair &&
                part.type->extent() == part.type->size) {
                visit(*part.type, at, part.blocklength);
                continue;
            }
            for (MPI_Count b = 0; b < part.blocklength; ++b, at += part.type->extent()) {
                for_each_basic(*part.type, at, visit);
            }
        }
    }
}

// Copies `in_count` items of one type onto items of another, as a message to oneself would; true when all of it fitted.
[[nodiscard]] bool copy_typed(const void* in, MPI_Count in_count, const Datatype& in_type, void* out,
                              MPI_Count out_count, const Datatype& out_type);

}  // namespace viaduct::mpi
