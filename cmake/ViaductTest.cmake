# SPDX-License-Identifier: BSD-2-Clause
# viaduct_test(name command... LABELS label... [TIMEOUT seconds] [ENVIRONMENT NAME=value...] [SERIAL | WAITS] [IN_TURN chain])
#
# A test with a deadline and an agent of its own: the agent's name holds the test's name and the build folder, so that
# tests of two builds, or two tests at once, never share a vipkad. Labels: unit, conformance, legacy, fault, header,
# install, stress. SERIAL is for tests that need the whole machine. One that WAITS keeps less than a fifth of a processor busy:
# two such run where one other would. They are begun early, so that there is something to run beside them. Tests IN_TURN of
# one chain run one after the other.
include(GoogleTest)

string(SHA256 VIADUCT_BUILD_HASH ${PROJECT_BINARY_DIR})
string(SUBSTRING ${VIADUCT_BUILD_HASH} 0 8 VIADUCT_BUILD_HASH)

# A sanitizer's report ends the process with a code that no test expects. (No reports of thread leaks: the short-lived child
# that starts the agent shares the memory of its parent, and its end looks like one.) (By default the thread sanitizer also ends a
# forked child that starts threads; opening a NIC in a child is one of the things tested.)
# Interfaces of the machine are no NICs of a test that does not ask for them.
# The time limits of the product are this many times as long in tests (docs/limits.md), so that a process that a busy machine lets wait
# fails no test. viaduct_true_limits() names the tests whose subject is a limit.
set(VIADUCT_TEST_TIME_FACTOR 10)
set(VIADUCT_TEST_ENVIRONMENT
    VIADUCT_TIME_FACTOR=${VIADUCT_TEST_TIME_FACTOR}
    VIADUCT_UDP_INTERFACES=
    ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1
    UBSAN_OPTIONS=print_stacktrace=1
    TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:die_after_fork=0:report_thread_leaks=0)

# viaduct_long(name...): tests of the current folder that take half a minute and more: they begin before what is short, and after what
# waits. ctest begins short and long ones as they come where it has not run them before.
function(viaduct_long)
    set_tests_properties(${ARGN} PROPERTIES COST 500)
endfunction()

function(viaduct_test name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "SERIAL;WAITS" "TIMEOUT;IN_TURN" "COMMAND;LABELS;ENVIRONMENT")
    if(NOT arg_TIMEOUT)
        set(arg_TIMEOUT 60)
    endif()
    if(NOT arg_LABELS)
        message(FATAL_ERROR "viaduct_test(${name}): no LABELS, so no kind of tests has it")
    endif()
    # It is meant for a machine that does nothing else. On a busy one the test lasts longer, and it is the test's to say what is
    # too long; this only ends what hangs.
    if(NOT arg_SERIAL)
        math(EXPR arg_TIMEOUT "3 * ${arg_TIMEOUT}")
    endif()
    # CONN_LOST is held back for this long, which is no limit: with the factor every test of an ended peer would take seconds longer.
    set(prompt VIADUCT_VIPL_CONN_LOST_DELAY_MS=250)
    if(unit IN_LIST arg_LABELS)  # the settings of their process are their own
        set(prompt)
    endif()
    add_test(NAME ${name} COMMAND ${arg_COMMAND} ${arg_UNPARSED_ARGUMENTS})
    set_tests_properties(${name} PROPERTIES
        LABELS "${arg_LABELS}"
        TIMEOUT ${arg_TIMEOUT}
        ENVIRONMENT "VIADUCT_AGENT=@viaduct-ctest-${name}-${VIADUCT_BUILD_HASH};${VIADUCT_TEST_ENVIRONMENT};${prompt};${arg_ENVIRONMENT}")
    if(arg_SERIAL)
        set_tests_properties(${name} PROPERTIES RUN_SERIAL ON)
    endif()
    if(arg_WAITS)
        set_tests_properties(${name} PROPERTIES COST 1000)
    else()
        set_tests_properties(${name} PROPERTIES PROCESSORS 2)
    endif()
    if(arg_IN_TURN)
        set_tests_properties(${name} PROPERTIES RESOURCE_LOCK ${arg_IN_TURN})
    endif()
endfunction()

# viaduct_true_limits(test...): tests about time limits of the product (docs/limits.md), which have their true length there. Such a test
# is SERIAL, unless it allows seconds more than the limit.
function(viaduct_true_limits)
    set_property(TEST ${ARGN} APPEND PROPERTY ENVIRONMENT VIADUCT_TIME_FACTOR=1)
endfunction()

# viaduct_compile_together(target N [NAME name SOURCES file...]): N files of it, of those given, are compiled as one, in every
# build: reading the test framework's headers takes most of the time that compiling a test does. Names in their anonymous
# namespaces have to differ; a local may have the name of a global of another file.
function(viaduct_compile_together target size)
    cmake_parse_arguments(PARSE_ARGV 2 arg "" "NAME" "SOURCES")
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${size})
    if(arg_NAME)
        set(number 0)
        foreach(source IN LISTS arg_SOURCES)
            math(EXPR group "${number} / ${size}")
            math(EXPR number "${number} + 1")
            set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${arg_NAME}_${group})
        endforeach()
        set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
    endif()
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage -Wno-shadow -Wshadow=local>)
endfunction()
