# SPDX-License-Identifier: MIT
# dtool-host, the program that dtool brings to the hosts: static, so that it runs on any Linux of its processor, and small,
# so that it is there soon. It uses nothing but the kernel, the C and C++ libraries and zstd's.
set(DTOOL_HOST_SOURCES
  ssh/host/answers/check_host.cpp
  ssh/host/answers/gpus.cpp
  ssh/host/answers/kept_things.cpp
  ssh/host/answers/log_filter.cpp
  ssh/host/answers/python_environment.cpp
  ssh/host/answers/send_log.cpp
  ssh/host/answers/serve.cpp
  ssh/host/answers/status.cpp
  ssh/host/answers/survey.cpp
  ssh/host/answers/trainers.cpp
  ssh/host/answers/trial.cpp
  ssh/host/child.cpp
  ssh/host/explaining_line.cpp
  ssh/host/files.cpp
  ssh/host/frame_input.cpp
  ssh/host/kill.cpp
  ssh/host/members.cpp
  ssh/host/network.cpp
  ssh/host/process_table.cpp
  ssh/host/rank_log.cpp
  ssh/host/session/coordinator.cpp
  ssh/host/session/guard.cpp
  ssh/host/session/job.cpp
  ssh/host/session/kept_ranks.cpp
  ssh/host/session/last_words.cpp
  ssh/host/session/log_tail.cpp
  ssh/host/session/machine.cpp
  ssh/host/session/merging.cpp
  ssh/host/session/rank.cpp
  ssh/host/session/rank_logs.cpp
  ssh/host/session/ranks.cpp
  ssh/host/session/report.cpp
  ssh/host/session/report_link.cpp
  ssh/host/session/report_port.cpp
  ssh/host/session/scheduled_job.cpp
  ssh/host/session/session.cpp
  ssh/host/session/supervised_session.cpp
  ssh/host/session/supervision.cpp
  ssh/host/start_job.cpp
  ssh/host/strangers.cpp
  ssh/host/tree/answer_copy.cpp
  ssh/host/tree/answer_tree.cpp
  ssh/host/cipher.cpp
  ssh/host/tree/copy_folder.cpp
  ssh/host/tree/inside.cpp
  ssh/host/tree/kept_copy.cpp
  ssh/host/tree/own_tree.cpp
  ssh/host/tree/package_server.cpp
  ssh/host/tree/placing.cpp
  ssh/host/tree/remove_tree.cpp
  ssh/host/tree/take_parcel.cpp
  ssh/host/tree/tree_change.cpp
  ssh/host/tree/tree_folder.cpp
  ssh/host/unseen.cpp
  ssh/host/versions.cpp
  ssh/wire/protocol.cpp
  ssh/wire/words.cpp)
# A library, because the launcher speaks the same protocol and tests link it. What the launcher does much of is quick, all else small.
add_library(dtool_host STATIC ${DTOOL_HOST_SOURCES})
dtool_join_sources(dtool_host 12)
target_link_libraries(dtool_host PUBLIC dtool_channel $<IF:${DTOOL_IS_PORTABLE},${DTOOL_ARCHIVE_zstd},zstd>)
target_compile_definitions(dtool_host PRIVATE DTOOL_ZSTD)
target_compile_options(dtool_host PRIVATE -Os -ffunction-sections -fdata-sections)
set_source_files_properties(ssh/host/cipher.cpp PROPERTIES COMPILE_OPTIONS -O3)

add_executable(dtool-host ssh/host/answers/main.cpp)
target_link_libraries(dtool-host PRIVATE dtool_host)
target_compile_options(dtool-host PRIVATE -Os -ffunction-sections -fdata-sections)
if(NOT DTOOL_SANITIZE)  # a sanitizer's library cannot be linked statically
  target_link_options(dtool-host PRIVATE -static -s -Wl,--gc-sections)
endif()

# The same for hosts of the other processor, where a compiler for that is installed (Debian: g++-aarch64-linux-gnu,
# g++-x86-64-linux-gnu). Without zstd: packages go there uncompressed.
set(DTOOL_HOST_FILE ${PROJECT_BINARY_DIR}/dtool-host)
set(programs ${CMAKE_SYSTEM_PROCESSOR}=${DTOOL_HOST_FILE})
if(CMAKE_SYSTEM_PROCESSOR STREQUAL aarch64)
  set(other_processor x86_64)
else()
  set(other_processor aarch64)
endif()
find_program(DTOOL_CROSS_COMPILER ${other_processor}-linux-gnu-g++)
if(DTOOL_CROSS_COMPILER AND NOT DTOOL_SANITIZE)
  set(DTOOL_OTHER_HOST_FILE ${PROJECT_BINARY_DIR}/dtool-host-${other_processor})
  set(objects "")
  dtool_parts(parts 12 SOURCES ssh/host/answers/main.cpp ${DTOOL_HOST_SOURCES} ${DTOOL_CHANNEL_SOURCES})
  foreach(part IN LISTS parts)
    string(REPLACE "," ";" sources "${part}")
    list(LENGTH objects number)
    set(joined ${PROJECT_BINARY_DIR}/${other_processor}/part_${number}.cpp)
    list(TRANSFORM sources REPLACE "(.+)" "#include \"\\1\"\n" OUTPUT_VARIABLE includes)
    string(CONCAT includes ${includes})
    file(CONFIGURE OUTPUT ${joined} CONTENT "${includes}" @ONLY)
    add_custom_command(OUTPUT ${joined}.o DEPFILE ${joined}.d DEPENDS ${joined} ${sources} VERBATIM
      COMMAND ${CMAKE_CXX_COMPILER_LAUNCHER} ${DTOOL_CROSS_COMPILER} -std=c++20 -Os -ffunction-sections -fdata-sections
        -I${PROJECT_SOURCE_DIR} -MD -MF ${joined}.d -c ${joined} -o ${joined}.o)
    list(APPEND objects ${joined}.o)
  endforeach()
  add_custom_command(OUTPUT ${DTOOL_OTHER_HOST_FILE} DEPENDS ${objects} VERBATIM
    COMMAND ${DTOOL_CROSS_COMPILER} -static -s -Wl,--gc-sections ${objects} -o ${DTOOL_OTHER_HOST_FILE})
  list(APPEND programs ${other_processor}=${DTOOL_OTHER_HOST_FILE})
endif()

# Inside dtool: their bytes, and their hashes, which name their folders on the hosts.
string(REPLACE ";" "," programs_word "${programs}")
set(hash_source ${PROJECT_BINARY_DIR}/generated/ssh/fanout/host_program_names.cpp)
add_custom_command(OUTPUT ${hash_source}
  COMMAND ${CMAKE_COMMAND} -DPROGRAMS=${programs_word} -DSOURCE=${hash_source} -P ${PROJECT_SOURCE_DIR}/ssh/fanout/host_program_hash.cmake
  DEPENDS dtool-host ${DTOOL_OTHER_HOST_FILE} ssh/fanout/host_program_hash.cmake VERBATIM)
find_program(DTOOL_GZIP gzip REQUIRED)
set(packed "")
set(definitions "")
set(suffix "")
foreach(file ${DTOOL_HOST_FILE} ${DTOOL_OTHER_HOST_FILE})
  add_custom_command(OUTPUT ${file}.gz DEPENDS ${file} VERBATIM COMMAND ${DTOOL_GZIP} -9nkf ${file})
  list(APPEND packed ${file} ${file}.gz)
  list(APPEND definitions DTOOL_HOST_FILE${suffix}="${file}" DTOOL_HOST_FILE${suffix}_GZ="${file}.gz")
  set(suffix _2)
endforeach()
target_sources(dtool_ssh PRIVATE ssh/fanout/host_program.S ${hash_source})
set_source_files_properties(ssh/fanout/host_program.S PROPERTIES COMPILE_DEFINITIONS "${definitions}" OBJECT_DEPENDS "${packed}")
target_link_libraries(dtool_ssh PUBLIC dtool_host)
