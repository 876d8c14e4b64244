// SPDX-License-Identifier: BSD-2-Clause
// Categories: one of all, in it the parameters, the engine and each protocol. They never change.
#include <cstring>

#include "mpi-adi/mpi/tool/tool.hpp"
#include "mpi-adi/mpi/tool/variables.hpp"

namespace viaduct::mpi::tool {
namespace {

struct Category {
    std::string name;
    std::string description;
    std::vector<int> cvars, pvars, categories;
};

std::vector<Category> make_all() {
    std::vector<Category> all;
    all.push_back({"cmpi", "everything", {}, {}, {}});
    all.push_back({"parameters", "environment variables of the device", {}, {}, {}});
    all.push_back({"engine", "the job and its messages", {}, {}, {}});
    const size_t first_protocol = all.size();
    for (int protocol = 0; protocol < mpip_protocol_count(); ++protocol) {
        const std::string name = mpip_protocol_name(protocol);
        all.push_back({name, "counters of the protocol module " + name, {}, {}, {}});
    }
    for (size_t i = 1; i < all.size(); ++i) {
        all[0].categories.push_back(int(i));
    }
    for (size_t i = 0; i < controls().size(); ++i) {
        all[1].cvars.push_back(int(i));
    }
    const auto& variables = performances();
    for (size_t i = 0; i < variables.size(); ++i) {
        const int protocol = variables[i].protocol;
        all[protocol < 0 ? 2 : first_protocol + size_t(protocol)].pvars.push_back(int(i));
    }
    return all;
}

const std::vector<Category>& categories() {
    static const auto* all = new std::vector<Category>(make_all());
    return *all;
}

const Category* category_at(int index) {
    const auto& all = categories();
    return index < 0 || size_t(index) >= all.size() ? nullptr : &all[size_t(index)];
}

// The first `len` of a category's members.
int list(int index, std::vector<int> Category::*members, int len, int indices[]) {
    const Category* one = category_at(index);
    if (!one) {
        return MPI_T_ERR_INVALID_INDEX;
    }
    if (len < 0 || (len > 0 && !indices)) {
        return MPI_T_ERR_INVALID;
    }
    for (size_t i = 0; i < (one->*members).size() && i < size_t(len); ++i) {
        indices[i] = (one->*members)[i];
    }
    return MPI_SUCCESS;
}

}  // namespace
}  // namespace viaduct::mpi::tool

using namespace viaduct::mpi::tool;

VIADUCT_MPI_EXPORT(MPI_T_category_get_num)
VIADUCT_MPI_FUNCTION PMPI_T_category_get_num(int* num_cat) try {
    VIADUCT_TOOL_CALL()
    give(num_cat, categories().size());
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_EXPORT(MPI_T_category_get_info)
VIADUCT_MPI_FUNCTION PMPI_T_category_get_info(int cat_index, char* name, int* name_len, char* desc,
                                              int* desc_len, int* num_cvars, int* num_pvars,
                                              int* num_categories) try {
    VIADUCT_TOOL_CALL()
    const Category* one = category_at(cat_index);
    if (!one) {
        return MPI_T_ERR_INVALID_INDEX;
    }
    give_text(one->name, name, name_len);
    give_text(one->description, desc, desc_len);
    give(num_cvars, one->cvars.size());
    give(num_pvars, one->pvars.size());
    give(num_categories, one->categories.size());
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_EXPORT(MPI_T_category_get_index)
VIADUCT_MPI_FUNCTION PMPI_T_category_get_index(const char* name, int* cat_index) try {
    VIADUCT_TOOL_CALL()
    const auto& all = categories();
    for (size_t i = 0; name && i < all.size(); ++i) {
        if (all[i].name == name) {
            give(cat_index, i);
            return MPI_SUCCESS;
        }
    }
    return MPI_T_ERR_INVALID_NAME;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_EXPORT(MPI_T_category_get_cvars)
VIADUCT_MPI_FUNCTION PMPI_T_category_get_cvars(int cat_index, int len, int indices[]) try {
    VIADUCT_TOOL_CALL()
    return list(cat_index, &Category::cvars, len, indices);
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_EXPORT(MPI_T_category_get_pvars)
VIADUCT_MPI_FUNCTION PMPI_T_category_get_pvars(int cat_index, int len, int indices[]) try {
    VIADUCT_TOOL_CALL()
    return list(cat_index, &Category::pvars, len, indices);
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_EXPORT(MPI_T_category_get_categories)
VIADUCT_MPI_FUNCTION PMPI_T_category_get_categories(int cat_index, int len, int indices[]) try {
    VIADUCT_TOOL_CALL()
    return list(cat_index, &Category::categories, len, indices);
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_EXPORT(MPI_T_category_get_num_events)
VIADUCT_MPI_FUNCTION PMPI_T_category_get_num_events(int cat_index, int* num_events) try {
    VIADUCT_TOOL_CALL()
    if (!category_at(cat_index)) {
        return MPI_T_ERR_INVALID_INDEX;
    }
    give(num_events, 0);
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_EXPORT(MPI_T_category_get_events)
VIADUCT_MPI_FUNCTION PMPI_T_category_get_events(int cat_index, int, int[]) try {
    VIADUCT_TOOL_CALL()
    return category_at(cat_index) ? MPI_SUCCESS : MPI_T_ERR_INVALID_INDEX;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI_EXPORT(MPI_T_category_changed)
VIADUCT_MPI_FUNCTION PMPI_T_category_changed(int* update_number) try {
    VIADUCT_TOOL_CALL()
    give(update_number, 0);
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()
