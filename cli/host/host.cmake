# dtool-host, the program that dtool brings to the hosts: static, so that it runs on any Linux of its processor, and small,
# so that it is there soon. It uses nothing but the kernel and the C and C++ libraries.
set(DTOOL_HOST_SOURCES
  cli/host/serve.cpp
  cli/logs/host/followed_job.cpp
  cli/logs/host/send_log.cpp
  cli/run/host/channel.cpp
  cli/run/host/coordinator.cpp
  cli/run/host/guard.cpp
  cli/run/host/job.cpp
  cli/run/host/limits.cpp
  cli/run/host/machine.cpp
  cli/run/host/report.cpp
  cli/run/host/report_link.cpp
  cli/run/host/report_port.cpp
  cli/run/host/session.cpp
  cli/run/host/supervised_session.cpp
  cli/run/host/supervision.cpp
  cli/run/host/watch.cpp
  cli/run/host/wire.cpp
  cli/watch/host/log_tail.cpp
  cli/watch/host/status.cpp
  ssh/host/child.cpp
  ssh/host/files.cpp
  ssh/host/frames.cpp
  ssh/host/holder.cpp
  ssh/host/identity.cpp
  ssh/host/job_files.cpp
  ssh/host/kill.cpp
  ssh/host/members.cpp
  ssh/host/process_table.cpp
  ssh/host/sha256.cpp
  ssh/host/start.cpp
  ssh/host/unseen.cpp
  ssh/host/words.cpp)
# For the launcher, which speaks the same protocol, and for tests.
add_library(dtool_host STATIC ${DTOOL_HOST_SOURCES})
target_link_libraries(dtool_host PUBLIC dtool_warnings)

add_executable(dtool-host cli/host/main.cpp ${DTOOL_HOST_SOURCES})
target_link_libraries(dtool-host PRIVATE dtool_warnings)
target_compile_options(dtool-host PRIVATE -Os -ffunction-sections -fdata-sections)
if(NOT DTOOL_SANITIZE)  # a sanitizer's library cannot be linked statically
  target_link_options(dtool-host PRIVATE -static -s -Wl,--gc-sections)
endif()

# Inside dtool: its bytes, and their hash, which names its folder on the hosts.
set(DTOOL_HOST_FILE ${PROJECT_BINARY_DIR}/dtool-host)
set(hash_header ${PROJECT_BINARY_DIR}/generated/ssh/fanout/host_program_hash.h)
add_custom_command(OUTPUT ${hash_header}
  COMMAND ${CMAKE_COMMAND} -DPROGRAM=${DTOOL_HOST_FILE} -DMACHINE=${CMAKE_SYSTEM_PROCESSOR} -DHEADER=${hash_header}
    -P ${PROJECT_SOURCE_DIR}/ssh/fanout/host_program_hash.cmake
  DEPENDS dtool-host ssh/fanout/host_program_hash.cmake VERBATIM)
target_sources(dtool_ssh PRIVATE ssh/fanout/host_program.S ${hash_header})
set_source_files_properties(ssh/fanout/host_program.S PROPERTIES
  COMPILE_DEFINITIONS DTOOL_HOST_FILE="${DTOOL_HOST_FILE}" OBJECT_DEPENDS ${DTOOL_HOST_FILE})
target_link_libraries(dtool_ssh PUBLIC dtool_host)
