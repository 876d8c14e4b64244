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

# What the files that include DPDK's headers are compiled with: it names a processor (-march), so it stays with them. A folder
# that the compiler searches by itself must not come before its own, which lead from one header of a name to the next.
pkg_check_modules(dpdk QUIET libdpdk)
set(VIADUCT_DPDK_FLAGS ${dpdk_CFLAGS_OTHER})
foreach(folder IN LISTS dpdk_INCLUDE_DIRS)
    if(NOT folder IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES)
        list(APPEND VIADUCT_DPDK_FLAGS -isystem${folder})
    endif()
endforeach()
# Of its many libraries those that are called; an older DPDK has the log in another one.
set(VIADUCT_DPDK_LIBRARIES rte_ethdev rte_mbuf rte_mempool rte_bus_vdev rte_eal)
if("rte_log" IN_LIST dpdk_LIBRARIES)
    list(APPEND VIADUCT_DPDK_LIBRARIES rte_log)
endif()

if(VIADUCT_TESTS)
    find_package(GTest REQUIRED)
    find_package(benchmark QUIET)
    find_package(Python3 REQUIRED COMPONENTS Interpreter)
endif()
