# SPDX-License-Identifier: MIT
# The commands. All but main.cpp is a library, so that tests can link it.
dtool_embed(${PROJECT_BINARY_DIR}/generated/cli/scripts.h dtool::cli::scripts
  ${PROJECT_SOURCE_DIR}/cli/launchers/gridengine/scripts/gridengine.sh
  ${PROJECT_SOURCE_DIR}/cli/launchers/mpi/scripts/launch_orted.sh
  ${PROJECT_SOURCE_DIR}/cli/launchers/mpi/scripts/mpi_check.sh
  ${PROJECT_SOURCE_DIR}/cli/launchers/mpi/scripts/mpirun.sh
  ${PROJECT_SOURCE_DIR}/cli/launchers/scheduler/scripts/numbers_scheduler.sh
  ${PROJECT_SOURCE_DIR}/cli/launchers/scheduler/scripts/scheduler_batch.sh
  ${PROJECT_SOURCE_DIR}/cli/launchers/scheduler/scripts/scheduler_check.sh
  ${PROJECT_SOURCE_DIR}/cli/launchers/scheduler/scripts/scheduler_end.sh
  ${PROJECT_SOURCE_DIR}/cli/launchers/scheduler/scripts/scheduler_folders.sh
  ${PROJECT_SOURCE_DIR}/cli/launchers/scheduler/scripts/scheduler_submit.sh
  ${PROJECT_SOURCE_DIR}/cli/launchers/slurm/scripts/slurm.sh
  ${PROJECT_SOURCE_DIR}/cli/launchers/slurm/scripts/slurm_end_steps.sh
  ${PROJECT_SOURCE_DIR}/cli/launchers/slurm/scripts/slurm_steps_probe.sh
  ${PROJECT_SOURCE_DIR}/cli/launchers/ssh/scripts/numbers_ssh.sh
  ${PROJECT_SOURCE_DIR}/cli/run/environment/scripts/ready.sh
  ${PROJECT_SOURCE_DIR}/cli/run/environment/scripts/container.sh
  ${PROJECT_SOURCE_DIR}/cli/run/environment/scripts/environment.sh
  ${PROJECT_SOURCE_DIR}/cli/run/environment/scripts/software.sh
  ${PROJECT_SOURCE_DIR}/cli/run/scripts/install_conda.py
  ${PROJECT_SOURCE_DIR}/cli/run/scripts/keep_ranks.sh
  ${PROJECT_SOURCE_DIR}/cli/run/scripts/launch.sh
  ${PROJECT_SOURCE_DIR}/cli/run/scripts/python_packages.py
  ${PROJECT_SOURCE_DIR}/cli/run/scripts/read_requirements.py
  ${PROJECT_SOURCE_DIR}/cli/run/scripts/solve_conda.py
  ${PROJECT_SOURCE_DIR}/cli/run/scripts/torchrun.sh
  ${PROJECT_SOURCE_DIR}/cli/run/scripts/words.sh)
dtool_embed(${PROJECT_BINARY_DIR}/generated/cli/completion_scripts.h dtool::cli::completion_scripts KEEP_COMMENTS
  ${PROJECT_SOURCE_DIR}/cli/shell/bash_completion.sh
  ${PROJECT_SOURCE_DIR}/cli/shell/fish_completion.fish
  ${PROJECT_SOURCE_DIR}/cli/shell/zsh_completion.zsh)
file(GLOB experiments CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/trainer/experiments/*.toml)
dtool_embed(${PROJECT_BINARY_DIR}/generated/trainer/experiments/shipped.h dtool::trainer::experiments KEEP_COMMENTS TABLE ${experiments})
add_library(dtool_cli STATIC
  cli/command_line.cpp
  cli/console.cpp
  cli/copy/copy.cpp
  cli/copy/copy_from_hosts.cpp
  cli/copy/copy_to_hosts.cpp
  cli/failures.cpp
  cli/fetch/fetch.cpp
  cli/fetch/fetch_plan.cpp
  cli/flag_values.cpp
  cli/host_options.cpp
  cli/host_output.cpp
  cli/hosts/check.cpp
  cli/hosts/check_facts.cpp
  cli/hosts/command.cpp
  cli/hosts/config.cpp
  cli/hosts/disconnect.cpp
  cli/hosts/install.cpp
  cli/hosts/trust.cpp
  cli/kill/end_run.cpp
  cli/kill/kill.cpp
  cli/launchers/gridengine/gridengine.cpp
  cli/launchers/launcher.cpp
  cli/launchers/mpi/mpi.cpp
  cli/launchers/scheduler/scheduler.cpp
  cli/launchers/scheduler/scheduler_text.cpp
  cli/launchers/slurm/slurm.cpp
  cli/launchers/slurm/slurm_text.cpp
  cli/launchers/ssh/ssh.cpp
  cli/launchers/ssh/supervised.cpp
  cli/logs/follow.cpp
  cli/logs/log_follow.cpp
  cli/logs/log_lines.cpp
  cli/logs/log_output.cpp
  cli/logs/log_stream.cpp
  cli/logs/logs.cpp
  cli/logs/since.cpp
  cli/large_texts.cpp
  cli/metric_numbers.cpp
  cli/new_run.cpp
  cli/options.cpp
  cli/plot/axis.cpp
  cli/plot/chart.cpp
  cli/plot/comm_rows.cpp
  cli/plot/gnuplot.cpp
  cli/plot/metrics.cpp
  cli/plot/panel.cpp
  cli/plot/picture.cpp
  cli/plot/plot.cpp
  cli/plot/plot_sources.cpp
  cli/plot/terminal_chart.cpp
  cli/record/comparison.cpp
  cli/record/diff.cpp
  cli/record/find_run.cpp
  cli/record/packed_text.cpp
  cli/record/record.cpp
  cli/record/record_end.cpp
  cli/record/record_files.cpp
  cli/record/show.cpp
  cli/recorded.cpp
  cli/remove_run.cpp
  cli/run/brought_folder.cpp
  cli/run/check.cpp
  cli/run/code_tree.cpp
  cli/run/conda_packages.cpp
  cli/run/data.cpp
  cli/run/earlier_code.cpp
  cli/run/earlier_outputs.cpp
  cli/run/earlier_run.cpp
  cli/run/environment/assignments.cpp
  cli/run/environment/environment.cpp
  cli/run/environment/environment_lacks.cpp
  cli/run/environment/exports.cpp
  cli/run/environment/program_lacks.cpp
  cli/run/experiment.cpp
  cli/run/flags.cpp
  cli/run/listener.cpp
  cli/run/listener_trial.cpp
  cli/run/make_plan.cpp
  cli/run/make_ready.cpp
  cli/run/package_store.cpp
  cli/run/pending_run.cpp
  cli/run/plan.cpp
  cli/run/program_flags.cpp
  cli/run/program_words.cpp
  cli/run/python_environment.cpp
  cli/run/python_packages.cpp
  cli/run/record_plan.cpp
  cli/run/report.cpp
  cli/run/resume.cpp
  cli/run/run.cpp
  cli/run/sending_progress.cpp
  cli/run/start.cpp
  cli/run/start_jobs.cpp
  cli/run/supply.cpp
  cli/run/trainer_bundle.cpp
  cli/run/tree_push.cpp
  cli/settings.cpp
  cli/shell/completion.cpp
  cli/shell/live_values.cpp
  cli/shell/man_page.cpp
  cli/shell/print_completion.cpp
  cli/terminal_text.cpp
  cli/watch/attach.cpp
  cli/watch/cause.cpp
  cli/watch/full_screen.cpp
  cli/watch/list.cpp
  cli/watch/list_table.cpp
  cli/watch/machine_status.cpp
  cli/watch/raw_terminal.cpp
  cli/watch/run_states.cpp
  cli/watch/run_status.cpp
  cli/watch/status.cpp
  cli/watch/status_answer.cpp
  cli/watch/status_headlines.cpp
  cli/watch/status_table.cpp
  cli/watch/text_table.cpp
  cli/watch/watch.cpp)
dtool_join_sources(dtool_cli 12)
target_link_libraries(dtool_cli PUBLIC dtool_warnings dtool_ssh dtool_sync dtool_killfiles fmt::fmt
  PRIVATE PkgConfig::tomlplusplus PUBLIC
  nlohmann_json::nlohmann_json CLI11::CLI11)
add_executable(dtool cli/main.cpp)
target_link_libraries(dtool PRIVATE dtool_cli)

# Man pages come from the tables that --help comes from, so dtool writes them itself.
if(NOT CMAKE_CROSSCOMPILING)
  string(TIMESTAMP today "%Y-%m-%d" UTC)  # or what SOURCE_DATE_EPOCH says
  set(man_folder ${PROJECT_BINARY_DIR}/man)
  add_custom_command(OUTPUT ${man_folder}/dtool.1
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${man_folder}
    COMMAND dtool __man ${man_folder} ${today}
    DEPENDS dtool VERBATIM)
  add_custom_target(man_pages ALL DEPENDS ${man_folder}/dtool.1)
endif()

# What goes with the program, for the package that has `component`. Arguments after it go to install().
function(dtool_install_extras component)
  if(man_folder)
    install(DIRECTORY ${man_folder}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT ${component} ${ARGN}
      FILES_MATCHING PATTERN "*.1")
  endif()
  install(FILES cli/shell/bash_completion.sh DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
    RENAME dtool COMPONENT ${component} ${ARGN})
  set(zsh vendor-completions)  # Debian's name
  if("${component}" STREQUAL "portable")
    set(zsh site-functions)
  endif()
  install(FILES cli/shell/zsh_completion.zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/${zsh}
    RENAME _dtool COMPONENT ${component} ${ARGN})
  install(FILES cli/shell/fish_completion.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d
    RENAME dtool.fish COMPONENT ${component} ${ARGN})
endfunction()
install(TARGETS dtool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT dtool)
dtool_install_extras(dtool)
