// SPDX-License-Identifier: BSD-2-Clause
// Shared objects found in folders and loaded at run time: providers of NICs, transports of MPI. Each is called NAME.so
// and exports one table. What the table has to be is checked by those who use it.
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

// Only such names become part of a path: small letters, digits, _ and -.
bool is_plugin_name(std::string_view name);

// The folder of the library or program that contains this code.
std::filesystem::path library_folder();

// By name in each folder, the folders in their order; of two with one name the first. A folder that is not there has
// none.
std::vector<PluginFile> plugins_in(const std::vector<std::filesystem::path>& folders);

struct PluginTable {
    const void* table = nullptr;
    std::string error;  // why not, for people
};

// What the object, which is to be a `kind` ("provider"), exports under that symbol. It stays for the life of the
// process: its threads, and its code on a stack, may outlive any moment at which it could be closed.
PluginTable load_plugin(const PluginFile& file, const char* symbol, const char* kind);

}  // namespace viaduct
