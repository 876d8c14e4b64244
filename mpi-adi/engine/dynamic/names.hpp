// SPDX-License-Identifier: BSD-2-Clause
// Names under which ports are published: by the launcher where it keeps names, else in files of a folder that only this
// user may write to. CMPI_NAME_FOLDER selects files, which jobs of several launchers can share.
#pragma once

#include <string>

namespace viaduct::mpi {

// An MPI error class: MPI_ERR_SERVICE for a name that is published already.
int publish_name(const std::string& service, const std::string& port);
// MPI_ERR_SERVICE: this process has published no such name.
int unpublish_name(const std::string& service);
// MPI_ERR_NAME: no process has published it, or the publisher has ended.
int look_up_name(const std::string& service, std::string* port);

}  // namespace viaduct::mpi
