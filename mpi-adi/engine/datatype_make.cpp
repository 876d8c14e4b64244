// SPDX-License-Identifier: BSD-2-Clause
// Making derived datatypes: bounds by the rules of the MPI standard (markers beat natural bounds, structures are padded
// to their strictest member), and flattening into strided runs.
#include <algorithm>
#include <limits>

#include "mpi-adi/engine/datatype.hpp"

namespace viaduct::mpi {
namespace {

// Collects pieces of one item in type-map order, joining what touches and folding equal pieces at equal distances.
class Flattener {
  public:
    explicit Flattener(std::vector<Run>& runs) : runs_(runs) {}

    void add(MPI_Aint offset, MPI_Aint length, MPI_Count count, MPI_Aint stride) {
        if (count > 1 && stride == length) {
            length *= count;
            count = 1;
        }
        if (!runs_.empty() && fold(runs_.back(), offset, length, count, stride)) {
            return;
        }
        runs_.push_back({offset, length, count, count > 1 ? stride : 0, 0});
    }

    // `n` copies of a flattened item, `apart` apart.
    void add_items(const std::vector<Run>& item, MPI_Aint at, MPI_Count n, MPI_Aint apart) {
        if (item.size() == 1 && n > 0) {
            const Run& run = item[0];
            if (run.count == 1) {
                add(at + run.offset, run.length, n, apart);
                return;
            }
            if (run.count * run.stride == apart) {
                add(at + run.offset, run.length, n * run.count, run.stride);
                return;
            }
        }
        for (MPI_Count i = 0; i < n; ++i, at += apart) {
            for (const Run& run : item) {
                add(at + run.offset, run.length, run.count, run.stride);
            }
        }
    }

    void finish() {
        MPI_Count packed = 0;
        for (Run& run : runs_) {
            run.packed = packed;
            packed += run.length * run.count;
        }
        runs_.shrink_to_fit();
    }

  private:
    static bool fold(Run& last, MPI_Aint offset, MPI_Aint length, MPI_Count count, MPI_Aint stride) {
        if (last.count == 1 && count == 1 && last.offset + last.length == offset) {
            last.length += length;
            return true;
        }
        if (last.length != length) {
            return false;
        }
        MPI_Aint step = last.count > 1 ? last.stride : offset - last.offset;
        if (offset != last.offset + last.count * step || (count > 1 && stride != step)) {
            return false;
        }
        last.stride = step;
        last.count += count;
        return true;
    }

    std::vector<Run>& runs_;
};

class Bounds {
  public:
    // `low` and `high` are where the first and the last of a row of items of `type` lie.
    void cover(const Datatype& type, MPI_Aint low, MPI_Aint high) {
        // A marker bounds its own side only.
        if (type.basic != BasicClass::marker_ub) {
            include_lb(low + type.lb, type.sticky_lb);
        }
        if (type.basic != BasicClass::marker_lb) {
            include_ub(high + type.ub, type.sticky_ub);
        }
        if (type.size) {
            true_lb_ = std::min(true_lb_, low + type.true_lb);
            true_ub_ = std::max(true_ub_, high + type.true_ub);
        }
        any_ = true;
    }

    void apply(Datatype& type) const {
        if (!any_) {
            return;
        }
        type.lb = lb_ < kMax ? lb_ : 0;
        type.ub = ub_ > -kMax ? ub_ : 0;
        type.sticky_lb = sticky_lb_;
        type.sticky_ub = sticky_ub_;
        type.true_lb = true_lb_ <= true_ub_ ? true_lb_ : 0;
        type.true_ub = true_lb_ <= true_ub_ ? true_ub_ : 0;
    }

  private:
    void include_lb(MPI_Aint lb, bool sticky) {
        if (sticky > sticky_lb_) {
            lb_ = lb;
            sticky_lb_ = true;
        } else if (sticky == sticky_lb_) {
            lb_ = std::min(lb_, lb);
        }
    }
    void include_ub(MPI_Aint ub, bool sticky) {
        if (sticky > sticky_ub_) {
            ub_ = ub;
            sticky_ub_ = true;
        } else if (sticky == sticky_ub_) {
            ub_ = std::max(ub_, ub);
        }
    }

    static constexpr MPI_Aint kMax = std::numeric_limits<MPI_Aint>::max();
    MPI_Aint lb_ = kMax, ub_ = -kMax, true_lb_ = kMax, true_ub_ = -kMax;
    bool sticky_lb_ = false, sticky_ub_ = false, any_ = false;
};

// A marker alone bounds one side only; its other bound does not count.
bool bounds_nothing(const Datatype& type, MPI_Count n) { return n == 0 || (type.size == 0 && type.lb == type.ub &&
                                                                  !type.sticky_lb && !type.sticky_ub); }

void conclude(Datatype& type) {
    for (const Datatype::Part& part : type.parts) {
        type.size += type.repeats * part.blocklength * part.type->size;
        type.elements += type.repeats * part.blocklength * part.type->elements;
        // Types that occur in no item have no place in the type map, so they pad nothing.
        if (type.repeats * part.blocklength * part.type->size > 0) {
            type.alignment = std::max(type.alignment, part.type->alignment);
        }
        part.type->retain();
    }
    Flattener flat(type.runs);
    // A single part that repeats is one strided row; otherwise every repetition is spelled out.
    if (type.parts.size() == 1 && type.parts[0].blocklength == 1) {
        flat.add_items(type.parts[0].type->runs, type.parts[0].offset, type.repeats, type.stride);
    } else if (type.parts.size() == 1) {
        std::vector<Run> block;
        Flattener inner(block);
        inner.add_items(type.parts[0].type->runs, 0, type.parts[0].blocklength, type.parts[0].type->extent());
        flat.add_items(block, type.parts[0].offset, type.repeats, type.stride);
    } else {
        for (MPI_Count r = 0; r < type.repeats; ++r) {
            for (const Datatype::Part& part : type.parts) {
                flat.add_items(part.type->runs, r * type.stride + part.offset, part.blocklength, part.type->extent());
            }
        }
    }
    flat.finish();
    type.contiguous =
        type.size == 0 || (type.runs.size() == 1 && type.runs[0].count == 1 && type.extent() == type.size);
    type.seal();
}

}  // namespace

Datatype* make_repeated(MPI_Count count, MPI_Count blocklength, MPI_Aint stride, const Datatype& old) {
    auto* type = new Datatype();
    if (blocklength == 0) {
        count = 0;
    }
    type->repeats = count;
    type->stride = stride;
    type->parts = {{0, blocklength, &old}};
    Bounds bounds;
    if (!bounds_nothing(old, count)) {
        MPI_Aint block = (blocklength - 1) * old.extent();
        MPI_Aint last = (count - 1) * stride;
        bounds.cover(old, std::min<MPI_Aint>(0, last) + std::min<MPI_Aint>(0, block),
                     std::max<MPI_Aint>(0, last) + std::max<MPI_Aint>(0, block));
    }
    bounds.apply(*type);
    conclude(*type);
    return type;
}

Datatype* make_blocks(std::vector<Datatype::Part> parts, bool pad_to_alignment) {
    auto* type = new Datatype();
    Bounds bounds;
    for (const Datatype::Part& part : parts) {
        if (!bounds_nothing(*part.type, part.blocklength)) {
            MPI_Aint block = (part.blocklength - 1) * part.type->extent();
            bounds.cover(*part.type, part.offset + std::min<MPI_Aint>(0, block),
                         part.offset + std::max<MPI_Aint>(0, block));
        }
    }
    std::erase_if(parts, [](const Datatype::Part& part) { return part.blocklength == 0; });
    type->parts = std::move(parts);
    bounds.apply(*type);
    conclude(*type);
    if (pad_to_alignment && !type->sticky_ub && type->size) {
        MPI_Aint excess = type->extent() % type->alignment;
        type->ub += excess > 0 ? type->alignment - excess : 0;
        type->contiguous = type->contiguous && type->extent() == type->size;
        type->seal();
    }
    return type;
}

Datatype* make_resized(const Datatype& old, MPI_Aint lb, MPI_Aint extent) {
    auto* type = new Datatype();
    type->parts = {{0, 1, &old}};
    type->lb = lb;
    type->ub = lb + extent;
    type->true_lb = old.true_lb;
    type->true_ub = old.true_ub;
    type->sticky_lb = type->sticky_ub = true;
    conclude(*type);
    return type;
}

Datatype* make_subarray(std::span<const MPI_Count> sizes, std::span<const MPI_Count> subsizes,
                        std::span<const MPI_Count> starts, int order, const Datatype& old) {
    const int n = int(sizes.size());
    auto dimension = [&](int i) { return order == MPI_ORDER_FORTRAN ? i : n - 1 - i; };  // 0 varies fastest
    const Datatype* inner = &old;
    inner->retain();
    MPI_Aint stride = old.extent();
    MPI_Aint offset = 0;
    for (int i = 0; i < n; ++i) {
        int d = dimension(i);
        Datatype* outer =
            i == 0 ? make_repeated(1, subsizes[d], 0, *inner) : make_repeated(subsizes[d], 1, stride, *inner);
        inner->release();
        inner = outer;
        offset += starts[d] * stride;
        stride *= sizes[d];
    }
    Datatype* placed = make_blocks({{offset, 1, inner}}, false);
    inner->release();
    Datatype* whole = make_resized(*placed, 0, stride);
    placed->release();
    return whole;
}

namespace {

struct Slice {
    Datatype* type;
    MPI_Count start;  // in elements of this dimension
};

// What one process holds of one dimension: blocks of `block` out of `global` dealt round over `processes`.
Slice deal(MPI_Count global, int processes, int coordinate, MPI_Count block, MPI_Aint element, const Datatype& inner) {
    std::vector<Datatype::Part> parts;
    MPI_Count first = MPI_Count(coordinate) * block;
    for (MPI_Count at = first; at < global; at += MPI_Count(processes) * block) {
        MPI_Count n = std::min<MPI_Count>(block, global - at);
        // Elements of an outer dimension are not next to each other by the extent of the inner type: one part each.
        if (inner.extent() == element) {
            parts.push_back({(at - first) * element, n, &inner});
        } else {
            for (MPI_Count i = 0; i < n; ++i) {
                parts.push_back({(at - first + i) * element, 1, &inner});
            }
        }
    }
    return {make_blocks(std::move(parts), false), first < global ? first : 0};
}

}  // namespace

int make_darray(int size, int rank, std::span<const MPI_Count> gsizes, std::span<const int> distributions,
                std::span<const int> arguments, std::span<const int> processes, int order, const Datatype& old,
                Datatype** made) {
    const int n = int(gsizes.size());
    std::vector<int> coordinates(n);
    for (int d = 0, rest = rank, all = size; d < n; ++d) {
        all /= processes[d];  // processes are numbered in C order whatever the order of the array
        coordinates[d] = rest / all;
        rest %= all;
    }
    const Datatype* inner = &old;
    inner->retain();
    MPI_Aint stride = old.extent();
    MPI_Aint offset = 0;
    for (int i = 0; i < n; ++i) {
        int d = order == MPI_ORDER_FORTRAN ? i : n - 1 - i;
        MPI_Count block = gsizes[d];
        int over = 1;
        int at = 0;
        if (distributions[d] != MPI_DISTRIBUTE_NONE) {
            over = processes[d];
            at = coordinates[d];
            bool chosen = arguments[d] != MPI_DISTRIBUTE_DFLT_DARG;
            if (distributions[d] == MPI_DISTRIBUTE_BLOCK) {
                block = chosen ? arguments[d] : (gsizes[d] + over - 1) / over;
                if (block * over < gsizes[d]) {
                    inner->release();
                    return MPI_ERR_ARG;
                }
            } else {
                block = chosen ? arguments[d] : 1;
            }
        }
        Slice slice = deal(gsizes[d], over, at, block, stride, *inner);
        inner->release();
        inner = slice.type;
        offset += slice.start * stride;
        stride *= gsizes[d];
    }
    Datatype* placed = make_blocks({{offset, 1, inner}}, false);
    inner->release();
    *made = make_resized(*placed, 0, stride);
    placed->release();
    return MPI_SUCCESS;
}

}  // namespace viaduct::mpi
