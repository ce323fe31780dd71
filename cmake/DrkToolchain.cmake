# SPDX-License-Identifier: Apache-2.0
# Language, warnings, sanitizers and link mode, as interface targets that every target links.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()

find_program(DRK_CCACHE ccache)
if(DRK_CCACHE)
  # Paths count from here, so that a second clone finds what the first one compiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER
    ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${DRK_CCACHE})
endif()

# Line numbers are enough for backtraces, and full debug information doubles the build time.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1 -DNDEBUG")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

set(DRK_SANITIZE "" CACHE STRING "Sanitizer for host code: address, undefined or thread")
option(DRK_PORTABLE "Link third-party libraries statically" OFF)
option(DRK_FUZZ "Build the fuzz targets; needs clang" OFF)

# GCC 12 sees overlapping copies in std::string concatenation where there are none (GCC bug 105651).
add_library(drk_warnings INTERFACE)
target_compile_options(drk_warnings INTERFACE
  -Wall -Wextra -Wconversion -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wno-restrict -Werror
  # The list is GCC's, and so are a few beside it.
  $<$<CXX_COMPILER_ID:Clang>:-Wno-unknown-warning-option>)

# The guest core is loaded into an ordinary Python, so it never links this target.
add_library(drk_sanitize INTERFACE)
if(DRK_SANITIZE)
  target_compile_options(drk_sanitize INTERFACE
    -fsanitize=${DRK_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(drk_sanitize INTERFACE -fsanitize=${DRK_SANITIZE})
  if(DRK_SANITIZE STREQUAL "thread")
    target_compile_options(drk_sanitize INTERFACE -Wno-tsan)
  endif()
endif()
if(DRK_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "DRK_FUZZ needs clang, got ${CMAKE_CXX_COMPILER_ID}; use: cmake --preset fuzz")
  endif()
  # All code counts what it covers; libFuzzer itself is linked by the targets alone.
  target_compile_options(drk_sanitize INTERFACE -fsanitize=fuzzer-no-link)
endif()
