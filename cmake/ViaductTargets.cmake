# SPDX-License-Identifier: BSD-2-Clause
# How Viaduct's targets are made, so that the CMakeLists.txt of a folder is a name and a list of files.

# All .cpp files below the current folder, relative to it.
function(viaduct_sources out)
    file(GLOB_RECURSE found CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} *.cpp)
    set(${out} ${found} PARENT_SCOPE)
endfunction()

# viaduct_few_compilations(target N): N of its files are compiled as one, in every build: for parts whose files are many, small and
# read the same headers. As in sanitizer builds, names in the anonymous namespaces of its files have to differ.
function(viaduct_few_compilations target size)
    if(NOT CMAKE_UNITY_BUILD)
        set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${size})
        target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
    endif()
endfunction()

# viaduct_not_hot(source...): files of the current folder that read a command line, and whose compilation is longer than all the
# time ever spent in them. Nearly all of it is the parser's: a sanitizer of undefined behaviour, which would double it, looks
# at what they call.
function(viaduct_not_hot)
    set(options -O0)
    if(VIADUCT_SANITIZE MATCHES "undefined")
        list(APPEND options -fno-sanitize=undefined)
    endif()
    set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS "${options}")
endfunction()

# What code that ends in a library loaded by others needs: no lazy binding on hot paths, and thread-local variables
# at a fixed offset, because __tls_get_addr on every post would cost more than the post.
add_library(viaduct_library_flags INTERFACE)
target_compile_options(viaduct_library_flags INTERFACE -fno-plt -ftls-model=initial-exec)

# Exports only the names in a version script, and lets no symbol stay undefined. (A sanitizer's run-time comes with the
# program, so its names may stay open, and it has to see the calls that it stands in front of.) Of the C library's names those
# that a program may own are bound inside (core/libc/names.cpp): all of them where FILES is given, else those that are not of
# files.
function(viaduct_export_only target map)
    target_link_options(${target} PRIVATE LINKER:--version-script=${map} LINKER:-Bsymbolic)
    if(NOT VIADUCT_SANITIZE)
        target_link_options(${target} PRIVATE LINKER:-z,defs)
        if("FILES" IN_LIST ARGN)
            target_sources(${target} PRIVATE $<TARGET_OBJECTS:viaduct_names>)
        else()
            target_sources(${target} PRIVATE $<TARGET_OBJECTS:viaduct_names_but_files>)
        endif()
    endif()
    set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${map})
endfunction()

# viaduct_provider(name source...): the loadable module <libdir>/viaduct/<name>.so, which exports its operations table
# and nothing else, and viaduct_<name>_static, the same objects for white-box tests.
function(viaduct_provider name)
    add_library(viaduct_${name}_objects OBJECT ${ARGN})
    target_link_libraries(viaduct_${name}_objects PUBLIC viaduct_core PRIVATE viaduct_library_flags)

    add_library(viaduct_${name} MODULE)
    target_link_libraries(viaduct_${name} PRIVATE viaduct_${name}_objects)
    set_target_properties(viaduct_${name} PROPERTIES
        PREFIX "" OUTPUT_NAME ${name} LIBRARY_OUTPUT_DIRECTORY ${VIADUCT_BUILD_PROVIDERDIR})
    viaduct_export_only(viaduct_${name} ${PROJECT_SOURCE_DIR}/cmake/provider.map FILES)
    add_dependencies(viaduct_runtime viaduct_${name})
    install(TARGETS viaduct_${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/viaduct)

    # Its table has the same name in each provider: a test with several of them must not be given it along with other code.
    set_source_files_properties(provider.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    add_library(viaduct_${name}_static STATIC EXCLUDE_FROM_ALL)
    target_link_libraries(viaduct_${name}_static PUBLIC viaduct_${name}_objects)
endfunction()

# For programs with a command line. Parsers of command lines and writers of JSON cost the sanitizers' optimiser minutes, and
# their speed does not matter.
add_library(viaduct_command_line INTERFACE)
target_link_libraries(viaduct_command_line INTERFACE CLI11::CLI11)
if(VIADUCT_SANITIZE)
    target_compile_options(viaduct_command_line INTERFACE -O0)
endif()

# viaduct_tool(name source...): a program for users, in <bindir>, which sees vipl.h like any other program.
function(viaduct_tool name)
    add_executable(${name} ${ARGN})
    target_link_libraries(${name} PRIVATE vipl viaduct_core viaduct_command_line nlohmann_json::nlohmann_json)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${VIADUCT_BUILD_BINDIR})
    # A built tool is of use only with an agent to start and a NIC to open.
    add_dependencies(${name} viaduct_runtime)
    install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endfunction()

# What a VIA program needs at run time besides libvipl: the agent and the providers. Test programs depend on it.
add_custom_target(viaduct_runtime)
