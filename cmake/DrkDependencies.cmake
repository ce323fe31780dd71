# SPDX-License-Identifier: Apache-2.0
# Third-party libraries, from the distribution. ARCHITECTURE.md says why each is here.
if(DRK_PORTABLE)
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
  set(OPENSSL_USE_STATIC_LIBS ON)
endif()

find_package(Boost 1.81 REQUIRED)  # JSON, Describe: header-only here
find_package(OpenSSL REQUIRED COMPONENTS Crypto SSL)
find_package(Threads REQUIRED)
find_package(GTest REQUIRED)
find_path(DRK_SECCOMP_INCLUDE seccomp.h REQUIRED)
find_library(DRK_SECCOMP_LIBRARY seccomp REQUIRED)
find_path(DRK_SQLITE_INCLUDE sqlite3.h REQUIRED)
find_library(DRK_SQLITE_LIBRARY sqlite3 REQUIRED)
find_path(DRK_SPDLOG_INCLUDE spdlog/spdlog.h REQUIRED)
find_path(DRK_CLI11_INCLUDE CLI/CLI.hpp REQUIRED)
find_path(DRK_FMT_INCLUDE fmt/format.h REQUIRED)
# Headers alone: the guest core uses the limited API, so any CPython from 3.11 on can load it.
find_path(DRK_PYTHON_INCLUDE Python.h PATH_SUFFIXES python3.11 python3.12 python3.13 REQUIRED)

add_library(drk_seccomp INTERFACE)
target_include_directories(drk_seccomp SYSTEM INTERFACE ${DRK_SECCOMP_INCLUDE})
target_link_libraries(drk_seccomp INTERFACE ${DRK_SECCOMP_LIBRARY})

add_library(drk_sqlite INTERFACE)
target_include_directories(drk_sqlite SYSTEM INTERFACE ${DRK_SQLITE_INCLUDE})
target_link_libraries(drk_sqlite INTERFACE ${DRK_SQLITE_LIBRARY} ${CMAKE_DL_LIBS})

# Header-only, so that the guest core (a shared object) needs no static library built for it.
add_library(drk_fmt INTERFACE)
target_include_directories(drk_fmt SYSTEM INTERFACE ${DRK_FMT_INCLUDE})
target_compile_definitions(drk_fmt INTERFACE FMT_HEADER_ONLY)

add_library(drk_boost INTERFACE)
target_include_directories(drk_boost SYSTEM INTERFACE ${Boost_INCLUDE_DIRS})

add_library(drk_spdlog INTERFACE)
target_include_directories(drk_spdlog SYSTEM INTERFACE ${DRK_SPDLOG_INCLUDE})
target_compile_definitions(drk_spdlog INTERFACE SPDLOG_FMT_EXTERNAL)
target_link_libraries(drk_spdlog INTERFACE drk_fmt)
