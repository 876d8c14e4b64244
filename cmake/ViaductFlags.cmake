# SPDX-License-Identifier: BSD-2-Clause
# One place for language level, warnings and sanitizers: they hold for every target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

# Warnings are errors where CMAKE_COMPILE_WARNING_AS_ERROR says so, as continuous integration does: another compiler has others.
# A program of 32 bits is handed files by programs of 64 (the arena of a peer).
if(CMAKE_SIZEOF_VOID_P EQUAL 4)
    add_compile_definitions(_FILE_OFFSET_BITS=64)
endif()

add_compile_options(-Wall -Wextra -Wshadow -fno-omit-frame-pointer)

# Sanitizer builds compile a dozen files of a target as one (CMakePresets.json), which takes a third of the time. There no
# file is the main one, which this warning goes by.
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
endif()
# GCC collects its garbage from 128 MiB on, again and again in files of that size: a tenth of the time (in KiB).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(--param=ggc-min-heapsize=524288)
endif()

if(VIADUCT_SANITIZE)
    add_compile_options(-fsanitize=${VIADUCT_SANITIZE} -fno-sanitize-recover=all)
    add_link_options(-fsanitize=${VIADUCT_SANITIZE})
    # The check of an object's type opens a pipe at the first call of each polymorphic type, and reports the object as none
    # where no descriptor is left: programs and tests without descriptors would fail by chance.
    add_compile_options(-fno-sanitize=vptr)
    if(VIADUCT_SANITIZE STREQUAL "thread")
        add_compile_definitions(VIADUCT_TSAN=1)
        # GCC says so for every fence; where we use fences under this sanitizer the code asks for VIADUCT_TSAN.
        if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
            add_compile_options(-Wno-tsan)
        endif()
    endif()
endif()

# Fuzzers need to see which branches an input takes in all of the code they feed.
if(VIADUCT_FUZZ AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    add_compile_options(-fsanitize=fuzzer-no-link)
endif()
