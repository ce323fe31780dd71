# SPDX-License-Identifier: Apache-2.0
# drk_add_module(NAME SOURCES ... [PUBLIC targets] [PRIVATE targets]) makes drk::NAME, whose public
# face is include/drk/NAME.h (or the folder include/drk/NAME/), each header of which must compile alone.
function(drk_add_module name)
  cmake_parse_arguments(ARG "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  set(target drk_${name})
  add_library(${target} STATIC ${ARG_SOURCES})
  add_library(drk::${name} ALIAS ${target})
  file(GLOB headers CONFIGURE_DEPENDS
    ${PROJECT_SOURCE_DIR}/include/drk/${name}.h ${PROJECT_SOURCE_DIR}/include/drk/${name}/*.h)
  target_sources(${target} PUBLIC FILE_SET HEADERS
    BASE_DIRS ${PROJECT_SOURCE_DIR}/include FILES ${headers})
  set_target_properties(${target} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${target} PUBLIC ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE}
    drk_warnings drk_sanitize)
endfunction()

# drk_add_test(NAME SOURCES ... LINK ... [LABELS ...] [TIMEOUT s]) makes bin/NAME from gtest files.
function(drk_add_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;LINK;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
  target_compile_options(${name} PRIVATE -O1)
  target_link_libraries(${name} PRIVATE ${ARG_LINK} drk_warnings drk_sanitize GTest::gtest GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT})
  if(ARG_LABELS)
    set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}")
  endif()
endfunction()
