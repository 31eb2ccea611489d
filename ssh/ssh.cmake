# SPDX-License-Identifier: MIT
# Hosts, sessions, fan-out, quoting, screen sessions.
dtool_embed(${PROJECT_BINARY_DIR}/generated/ssh/scripts.h dtool::ssh::scripts
  ${PROJECT_SOURCE_DIR}/ssh/scripts/end_commands.sh)
add_library(dtool_ssh STATIC
  ssh/config/client_config.cpp
  ssh/config/config_block.cpp
  ssh/config/config_keyword.cpp
  ssh/config/hostfile.cpp
  ssh/fanout/fleet.cpp
  ssh/fanout/host_key_scan.cpp
  ssh/fanout/host_program.cpp
  ssh/fanout/kept_connections.cpp
  ssh/fanout/links.cpp
  ssh/fanout/local_connection.cpp
  ssh/fanout/port_forward.cpp
  ssh/fanout/remote_shell.cpp
  ssh/fanout/serving_program.cpp
  ssh/fanout/terminal_link.cpp
  ssh/host.cpp
  ssh/host_pattern.cpp
  ssh/kept/keeper.cpp
  ssh/kept/kept_connection.cpp
  ssh/kept/kept_folder.cpp
  ssh/kept/offered_session.cpp
  ssh/keys/identity.cpp
  ssh/keys/known_hosts.cpp
  ssh/machine/encodings.cpp
  ssh/machine/fd_bytes.cpp
  ssh/machine/files.cpp
  ssh/machine/interrupts.cpp
  ssh/machine/process.cpp
  ssh/machine/reactor.cpp
  ssh/machine/run_to_end.cpp
  ssh/notice.cpp
  ssh/program/asker.cpp
  ssh/program/askpass.cpp
  ssh/program/kept_masters.cpp
  ssh/program/master.cpp
  ssh/program/master_protocol.cpp
  ssh/program/masters.cpp
  ssh/program/program.cpp
  ssh/program/program_choice.cpp
  ssh/quote.cpp
  ssh/remote.cpp
  ssh/screen_job.cpp
  ssh/script.cpp
  ssh/session/agent.cpp
  ssh/session/connector.cpp
  ssh/session/exchange.cpp
  ssh/session/host_key.cpp
  ssh/session/session.cpp
  ssh/session/ssh_connection.cpp
  ssh/trace.cpp)
dtool_join_sources(dtool_ssh 12)
target_include_directories(dtool_ssh PUBLIC ${PROJECT_BINARY_DIR}/generated)
target_link_libraries(dtool_ssh PUBLIC dtool_warnings dtool_killfiles fmt::fmt
  PRIVATE "$<IF:${DTOOL_IS_PORTABLE},${DTOOL_ARCHIVE_ssh};${DTOOL_ARCHIVE_crypto};${DTOOL_ARCHIVE_z};${DTOOL_ARCHIVE_zstd},ssh;OpenSSL::Crypto>"
  Boost::headers $<TARGET_NAME_IF_EXISTS:Boost::process> Threads::Threads)
