// SPDX-License-Identifier: BSD-2-Clause
// See layout.hpp.
#include "mpi-adi/engine/rma/layout.hpp"

namespace viaduct::mpi::rma {
namespace {

// Collects runs; neighbours of equal length and distance become one.
class Collector {
public:
    void add(MPI_Aint offset, MPI_Aint length) {
        if (length == 0) return;
        if (!runs_.empty() && extend(runs_.back(), offset, length)) return;
        runs_.push_back({offset, length, 1, 0});
    }
    std::vector<WireRun> take() { return std::move(runs_); }

private:
    static bool extend(WireRun& last, MPI_Aint offset, MPI_Aint length) {
        if (last.count == 1 && last.offset + last.length == offset) {
            last.length += length;
            return true;
        }
        if (last.length != length) return false;
        const MPI_Aint stride = offset - last.offset;
        if (last.count > 1 && stride != last.count * last.stride) return false;
        if (last.count == 1) last.stride = stride;
        last.count++;
        return true;
    }

    std::vector<WireRun> runs_;
};

void add_elements(const Datatype& type, MPI_Aint at, Collector& into) {
    if (type.basic != BasicClass::none) return into.add(at, type.extent());
    for (MPI_Count r = 0; r < type.repeats; r++) {
        for (const Datatype::Part& part : type.parts) {
            const MPI_Aint first = at + r * type.stride + part.offset;
            if (part.type->basic != BasicClass::none) {
                into.add(first, part.blocklength * part.type->extent());
                continue;
            }
            for (MPI_Count b = 0; b < part.blocklength; b++)
                add_elements(*part.type, first + b * part.type->extent(), into);
        }
    }
}

bool is_marker(const Datatype& type) {
    return type.basic == BasicClass::marker_lb || type.basic == BasicClass::marker_ub;
}

}  // namespace

const Datatype* element_of(const Datatype& type) {
    if (type.basic != BasicClass::none) return is_marker(type) ? nullptr : &type;
    const Datatype* found = nullptr;
    for (const Datatype::Part& part : type.parts) {
        if (part.type->size == 0 || part.blocklength == 0) continue;
        const Datatype* inner = element_of(*part.type);
        if (inner == nullptr || (found != nullptr && found != inner)) return nullptr;
        found = inner;
    }
    return found;
}

TypeRef whole_elements(const Datatype& type) {
    const Datatype* element = element_of(type);
    if (element == nullptr || element->extent() == element->size) return TypeRef::share(type);
    Collector collector;
    add_elements(type, 0, collector);
    return unflatten(collector.take(), type.extent());
}

std::vector<WireRun> flatten(const Datatype& type) {
    std::vector<WireRun> runs;
    runs.reserve(type.runs.size());
    for (const Run& run : type.runs) runs.push_back({run.offset, run.length, run.count, run.stride});
    return runs;
}

TypeRef unflatten(std::span<const WireRun> runs, int64_t extent) {
    auto* type = new Datatype();
    TypeRef made(type);
    type->ub = extent;
    type->committed = true;
    bool first = true;
    for (const WireRun& run : runs) {
        int64_t bytes = 0;
        int64_t span = 0;
        int64_t low = run.offset;
        int64_t high = 0;
        if (run.length <= 0 || run.count <= 0 || __builtin_mul_overflow(run.length, run.count, &bytes) ||
            __builtin_mul_overflow(run.count - 1, run.stride, &span) ||
            __builtin_add_overflow(type->size, bytes, &type->size))
            return {};
        int64_t last = 0;
        if (__builtin_add_overflow(run.offset, span, &last)) return {};
        low = std::min(run.offset, last);
        if (__builtin_add_overflow(std::max(run.offset, last), run.length, &high)) return {};
        type->true_lb = first ? low : std::min(type->true_lb, low);
        type->true_ub = first ? high : std::max(type->true_ub, high);
        type->runs.push_back({run.offset, run.length, run.count, run.stride, type->size - bytes});
        first = false;
    }
    type->contiguous =
        type->size == 0 || (type->runs.size() == 1 && type->runs[0].count == 1 && extent == type->size);
    type->seal();
    return made;
}

bool bounds_of(const Datatype& type, int64_t count, int64_t* low, int64_t* high) {
    *low = *high = 0;
    if (count <= 0 || type.size == 0) return true;
    int64_t last = 0;
    return !__builtin_mul_overflow(count - 1, type.extent(), &last) &&
           !__builtin_add_overflow(type.true_lb, std::min<int64_t>(last, 0), low) &&
           !__builtin_add_overflow(type.true_ub, std::max<int64_t>(last, 0), high);
}

bool has_room(const Head& head, const Datatype& layout) {
    const auto size = static_cast<uint64_t>(layout.size);
    uint64_t room = 0;
    return head.count <= INT64_MAX && (__builtin_mul_overflow(head.count, size, &room) || head.bytes <= room);
}

}  // namespace viaduct::mpi::rma
