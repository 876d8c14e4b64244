# SPDX-License-Identifier: BSD-2-Clause
# Where things lie, in the install tree and (with the same relative paths) in the build tree, so that the library finds
# its agent and its providers beside itself without being told which of the two it runs from.
include(GNUInstallDirs)

foreach(dir IN ITEMS LIBDIR BINDIR SBINDIR)
    if(IS_ABSOLUTE "${CMAKE_INSTALL_${dir}}")
        message(FATAL_ERROR "CMAKE_INSTALL_${dir} must be relative to the prefix: the library finds its parts by relative paths")
    endif()
endforeach()

set(VIADUCT_BUILD_LIBDIR ${PROJECT_BINARY_DIR}/${CMAKE_INSTALL_LIBDIR})
set(VIADUCT_BUILD_BINDIR ${PROJECT_BINARY_DIR}/${CMAKE_INSTALL_BINDIR})
set(VIADUCT_BUILD_SBINDIR ${PROJECT_BINARY_DIR}/${CMAKE_INSTALL_SBINDIR})
set(VIADUCT_BUILD_PROVIDERDIR ${VIADUCT_BUILD_LIBDIR}/viaduct)

file(RELATIVE_PATH VIADUCT_LIBDIR_TO_VIPKAD /${CMAKE_INSTALL_LIBDIR} /${CMAKE_INSTALL_SBINDIR}/vipkad)
file(RELATIVE_PATH VIADUCT_SBINDIR_TO_LIBDIR /${CMAKE_INSTALL_SBINDIR} /${CMAKE_INSTALL_LIBDIR})
file(RELATIVE_PATH VIADUCT_BINDIR_TO_LIBDIR /${CMAKE_INSTALL_BINDIR} /${CMAKE_INSTALL_LIBDIR})
set(VIADUCT_LIBDIR_TO_PROVIDERS viaduct)

# Installed tools find libvipl beside themselves wherever the prefix was moved to; /usr needs no such help.
if(NOT CMAKE_INSTALL_PREFIX STREQUAL "/usr")
    set(CMAKE_INSTALL_RPATH "$ORIGIN/${VIADUCT_BINDIR_TO_LIBDIR}")
endif()

configure_file(${PROJECT_SOURCE_DIR}/core/config/paths.hpp.in ${PROJECT_BINARY_DIR}/generated/core/config/paths.hpp
    @ONLY)

# viaduct_install_naming_prefix(FILE DESTINATION NAME): installs a configured file that names the prefix. cmake --install --prefix may name another
# one than the configuration: the installed file has the prefix that it is installed into.
function(viaduct_install_naming_prefix file destination name)
    install(FILES ${file} DESTINATION ${destination} RENAME ${name})
    install(CODE "
        if(NOT CMAKE_INSTALL_PREFIX STREQUAL \"${CMAKE_INSTALL_PREFIX}\")
            file(READ \"${file}\" text)
            string(REPLACE \"${CMAKE_INSTALL_PREFIX}/\" \"\${CMAKE_INSTALL_PREFIX}/\" text \"\${text}\")
            file(WRITE \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${destination}/${name}\" \"\${text}\")
        endif()")
endfunction()
