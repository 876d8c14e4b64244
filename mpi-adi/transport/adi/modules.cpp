// SPDX-License-Identifier: BSD-2-Clause
#include "mpi-adi/transport/adi/modules.hpp"

#include <cstring>

#include "core/config/paths.hpp"
#include "core/plugin/plugin.hpp"
#include "mpi-adi/transport/adi/params.hpp"

extern "C" {
#define VIADUCT_MODULE(name) void mpip_##name##_bind(const struct mpip_device*, struct protocol*);
#include "mpi-adi/transport/adi/modules.def"
#undef VIADUCT_MODULE
void mpip_rails_bind(const struct mpip_device*, struct protocol*);
}

namespace viaduct::adi {

namespace fs = std::filesystem;

namespace {

constexpr const char* kSymbol = "mpip_module";
constexpr const char* kFolder = "transports";

struct All {
    std::vector<Module> modules;
    std::vector<std::string> refused;

    All() {
#define VIADUCT_MODULE(name) modules.push_back({#name, mpip_##name##_bind});
#include "mpi-adi/transport/adi/modules.def"
#undef VIADUCT_MODULE
        if (*param_text(Param::via_nics) != '\0') modules[MPIP_PROTO_VIA].bind = mpip_rails_bind;
        for (const PluginFile& file : plugins_in(folders())) {
            std::string why = add(file);
            if (!why.empty()) refused.push_back(std::move(why));
        }
    }

    // As named, or beside this library: libcmpi-adi lies in the folder of libraries, libcmpi two below it.
    static std::vector<fs::path> folders() {
        if (const char* named = param_text(Param::transports); *named != '\0') return {named};
        const fs::path here = library_folder();
        return {here / paths::kLibdirToProviders / kFolder, here / "../.." / paths::kLibdirToProviders / kFolder,
                fs::path(paths::kProviderDir) / kFolder};
    }

    // Empty: it is one more.
    std::string add(const PluginFile& file) {
        const PluginTable loaded = load_plugin(file, kSymbol, "transport");
        if (loaded.table == nullptr) return loaded.error;
        const auto* module = static_cast<const mpip_module*>(loaded.table);
        if (module->version != CMPI_ADI_VERSION)
            return file.path + " was built for version " + std::to_string(module->version) +
                   " of the device, this is " + std::to_string(CMPI_ADI_VERSION);
        if (module->name == nullptr || file.name != module->name || module->bind == nullptr)
            return file.path + " says its name is " + (module->name != nullptr ? module->name : "none");
        for (const Module& other : modules)
            if (file.name == other.name) return file.path + ": there is a transport of that name";
        if (modules.size() == NPROTO)
            return file.path + ": there are " + std::to_string(NPROTO) + " transports already";
        modules.push_back({module->name, module->bind});
        return {};
    }
};

const All& all() {
    static const auto* const found = new All;
    return *found;
}

}  // namespace

const std::vector<Module>& modules() { return all().modules; }
const std::vector<std::string>& refused_modules() { return all().refused; }

}  // namespace viaduct::adi
