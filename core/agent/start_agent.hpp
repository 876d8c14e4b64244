// SPDX-License-Identifier: BSD-2-Clause
// Starts vipkad so that the application cannot notice: no SIGCHLD, no child to wait for, no descriptor or
// terminal shared. Used by AgentLink only, on the thread that connects.
#pragma once

#include <string>

namespace viaduct {

// Where vipkad is: VIADUCT_VIPKAD, else beside the object that holds this code, else as configured. Empty
// when there is none that can be executed; `tried` then lists the places, for people.
std::string find_vipkad(std::string* tried = nullptr);

// Runs `path --socket address`, detached. 0, or the errno of the step that failed. Says nothing about whether
// the agent comes up: connect to it to find out.
int spawn_agent(const std::string& path, const std::string& address);

}  // namespace viaduct
