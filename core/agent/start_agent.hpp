// SPDX-License-Identifier: BSD-2-Clause
// Starts vipkad, or another program of ours that outlives the application, so that the application cannot
// notice: no SIGCHLD, no child to wait for, no descriptor or terminal shared. Used by AgentLink and providers,
// on the thread that connects.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace viaduct {

// Where vipkad is: VIADUCT_VIPKAD, else beside the object that holds this code, else as configured. Empty
// when there is none that can be executed; `tried` then lists the places, for people.
std::string find_vipkad(std::string* tried = nullptr);
// The same of another program in the folder of vipkad; `variable` of the environment may name it.
std::string find_beside_vipkad(const char* name, const char* variable, std::string* tried = nullptr);

// Runs `path --socket address`, detached. 0, or the errno of the step that failed. Says nothing about whether
// the agent comes up: connect to it to find out.
int spawn_agent(const std::string& path, const std::string& address, pid_t* started);
// Runs `path` with these arguments (the first is its own name) in the same way.
int spawn_detached(const std::string& path, std::vector<std::string> arguments, pid_t* started = nullptr);

}  // namespace viaduct
