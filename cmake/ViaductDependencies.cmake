# SPDX-License-Identifier: BSD-2-Clause
# Everything comes from Debian packages; `./viaduct setup` installs them by name.
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
pkg_check_modules(tomlplusplus REQUIRED IMPORTED_TARGET tomlplusplus)
pkg_check_modules(sodium REQUIRED IMPORTED_TARGET libsodium)
pkg_check_modules(libnl REQUIRED IMPORTED_TARGET libnl-3.0 libnl-route-3.0)

find_path(VIADUCT_EXPECTED_INCLUDE tl/expected.hpp REQUIRED)
add_library(viaduct_expected INTERFACE)
target_include_directories(viaduct_expected SYSTEM INTERFACE ${VIADUCT_EXPECTED_INCLUDE})

if(VIADUCT_TESTS)
    find_package(GTest REQUIRED)
    find_package(benchmark QUIET)
    find_package(Python3 REQUIRED COMPONENTS Interpreter)
endif()
