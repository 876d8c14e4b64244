# SPDX-License-Identifier: BSD-2-Clause
# The two ways to find an installed Viaduct: pkg-config (vipl) and CMake (find_package(viaduct), viaduct::vipl).
include(CMakePackageConfigHelpers)

install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/docs/cheat-sheet.html DESTINATION ${CMAKE_INSTALL_DOCDIR})

file(RELATIVE_PATH VIADUCT_PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" VIADUCT_PC_TO_PREFIX ${VIADUCT_PC_TO_PREFIX})
configure_file(${PROJECT_SOURCE_DIR}/cmake/vipl.pc.in ${PROJECT_BINARY_DIR}/generated/vipl.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/generated/vipl.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set(cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/viaduct)
install(EXPORT viaductTargets NAMESPACE viaduct:: DESTINATION ${cmake_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/viaductConfig.cmake.in
    ${PROJECT_BINARY_DIR}/generated/viaductConfig.cmake INSTALL_DESTINATION ${cmake_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/generated/viaductConfigVersion.cmake
    COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/generated/viaductConfig.cmake
    ${PROJECT_BINARY_DIR}/generated/viaductConfigVersion.cmake DESTINATION ${cmake_dir})
