# SPDX-License-Identifier: MIT
# dtool-host, the program that dtool brings to the hosts: static, so that it runs on any Linux of its processor, and small,
# so that it is there soon. It uses nothing but the kernel, the C and C++ libraries and zstd's.
include(sync/host/host.cmake)
set(DTOOL_HOST_SOURCES
  ${DTOOL_SYNC_HOST_SOURCES}
  cli/host/serve.cpp
  cli/hosts/host/ready.cpp
  cli/launchers/scheduler/host/scheduled_job.cpp
  cli/logs/host/followed_job.cpp
  cli/logs/host/log_filter.cpp
  cli/logs/host/send_log.cpp
  cli/run/host/check.cpp
  cli/run/host/coordinator.cpp
  cli/run/host/environment_list.cpp
  cli/run/host/gpus.cpp
  cli/run/host/guard.cpp
  cli/run/host/job.cpp
  cli/run/host/job_cause.cpp
  cli/run/host/kept_ranks.cpp
  cli/run/host/lacks.cpp
  cli/run/host/last_words.cpp
  cli/run/host/limits.cpp
  cli/run/host/line_merger.cpp
  cli/run/host/merging.cpp
  cli/run/host/machine.cpp
  cli/run/host/port_holder.cpp
  cli/run/host/port_state.cpp
  cli/run/host/python_environment.cpp
  cli/run/host/pytorch.cpp
  cli/run/host/rank.cpp
  cli/run/host/rank_logs.cpp
  cli/run/host/ranks.cpp
  cli/run/host/report.cpp
  cli/run/host/link_state.cpp
  cli/run/host/report_link.cpp
  cli/run/host/report_port.cpp
  cli/run/host/session.cpp
  cli/run/host/supervised_session.cpp
  cli/run/host/supervision.cpp
  cli/run/host/survey.cpp
  cli/run/host/trainers.cpp
  cli/run/host/used_by_runs.cpp
  cli/run/host/trial.cpp
  cli/run/host/watch.cpp
  cli/run/host/wire.cpp
  cli/watch/host/log_tail.cpp
  cli/watch/host/status.cpp
  ssh/host/cause_place.cpp
  ssh/host/channel.cpp
  ssh/host/child.cpp
  ssh/host/earlier_failure.cpp
  ssh/host/explaining_line.cpp
  ssh/host/files.cpp
  ssh/host/frames.cpp
  ssh/host/holder.cpp
  ssh/host/identity.cpp
  ssh/host/job_files.cpp
  ssh/host/kill.cpp
  ssh/host/log_times.cpp
  ssh/host/members.cpp
  ssh/host/network.cpp
  ssh/host/own_program.cpp
  ssh/host/process_table.cpp
  ssh/host/rank_log.cpp
  ssh/host/record_steps.cpp
  ssh/host/sha256.cpp
  ssh/host/start.cpp
  ssh/host/strangers.cpp
  ssh/host/unseen.cpp
  ssh/host/versions.cpp
  ssh/host/words.cpp)
# A library, because the launcher speaks the same protocol and tests link it. What the launcher does much of is quick, all else small.
add_library(dtool_host STATIC ${DTOOL_HOST_SOURCES})
dtool_join_sources(dtool_host 12)
target_link_libraries(dtool_host PUBLIC dtool_warnings $<IF:${DTOOL_IS_PORTABLE},${DTOOL_ARCHIVE_zstd},zstd>)
target_compile_definitions(dtool_host PRIVATE DTOOL_ZSTD)
target_compile_options(dtool_host PRIVATE -Os -ffunction-sections -fdata-sections)
set_source_files_properties(ssh/host/sha256.cpp PROPERTIES COMPILE_OPTIONS -O2)
set_source_files_properties(sync/host/cipher.cpp PROPERTIES COMPILE_OPTIONS -O3)

add_executable(dtool-host cli/host/main.cpp)
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
  dtool_parts(parts 12 SOURCES cli/host/main.cpp ${DTOOL_HOST_SOURCES})
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
