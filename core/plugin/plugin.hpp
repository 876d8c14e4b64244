// SPDX-License-Identifier: BSD-2-Clause
// Shared objects found in folders and loaded at run time: providers of NICs, transports of MPI. Each is called NAME.so
// and exports one table of functions, whose contents the caller checks (core/provider/loader.cpp,
// mpi-adi/transport/adi/modules.cpp). Slow path, any thread; no state, no lock.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace viaduct {

struct PluginFile {
    std::string name;  // "paramnet"
    std::string path;
};

// Whether a name has only small letters, digits, _ and -: only such a name may become part of a path.
bool is_plugin_name(std::string_view name);

// The folder of the library or program that contains this code.
std::filesystem::path library_folder();

// All plugins of the folders: folder by folder in the given order, sorted by name within each. Of plugins with the
// same name the first folder's counts. A missing folder counts as empty.
std::vector<PluginFile> plugins_in(const std::vector<std::filesystem::path>& folders);

struct PluginTable {
    const void* table = nullptr;
    std::string error;  // why table is null, for messages
};

// Loads the object and returns the address that it exports as `symbol`. `kind` ("provider") is used in the error text
// only. The object is never unloaded: its threads run, and its code is on stacks, until the process ends.
PluginTable load_plugin(const PluginFile& file, const char* symbol, const char* kind);

}  // namespace viaduct
