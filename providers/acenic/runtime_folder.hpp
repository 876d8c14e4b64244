// SPDX-License-Identifier: BSD-2-Clause
// The folder that DPDK keeps for each process and never removes. This runs on the thread that starts DPDK and in a
// function of on_exit, which must not throw: without std::filesystem, as in libstdc++ an allocation that fails in
// directory_iterator ends the process.
#pragma once

namespace viaduct::acenic {

// The first letters of the folder's name in each process that uses Viaduct.
inline constexpr const char* kRuntimePrefix = "viaduct-";

// Removes at once the folders beside `folder` whose processes were killed (a process that runs holds a lock on its
// "config"), and `folder` itself when this process ends. Called once.
void keep_runtime_folder(const char* folder);

}  // namespace viaduct::acenic
