# SPDX-License-Identifier: MIT
# The commands. All but main.cpp is a library, so that tests can link it.
dtool_embed(${PROJECT_BINARY_DIR}/generated/cli/scripts.h dtool::cli::scripts
  ${PROJECT_SOURCE_DIR}/cli/engines/scripts/gridengine.sh
  ${PROJECT_SOURCE_DIR}/cli/engines/scripts/launch_orted.sh
  ${PROJECT_SOURCE_DIR}/cli/engines/scripts/mpi_check.sh
  ${PROJECT_SOURCE_DIR}/cli/engines/scripts/mpirun.sh
  ${PROJECT_SOURCE_DIR}/cli/engines/scripts/numbers_scheduler.sh
  ${PROJECT_SOURCE_DIR}/cli/engines/scripts/numbers_ssh.sh
  ${PROJECT_SOURCE_DIR}/cli/engines/scripts/scheduler_batch.sh
  ${PROJECT_SOURCE_DIR}/cli/engines/scripts/scheduler_check.sh
  ${PROJECT_SOURCE_DIR}/cli/engines/scripts/scheduler_end.sh
  ${PROJECT_SOURCE_DIR}/cli/engines/scripts/scheduler_folders.sh
  ${PROJECT_SOURCE_DIR}/cli/engines/scripts/scheduler_submit.sh
  ${PROJECT_SOURCE_DIR}/cli/engines/scripts/slurm.sh
  ${PROJECT_SOURCE_DIR}/cli/engines/scripts/slurm_end_steps.sh
  ${PROJECT_SOURCE_DIR}/cli/engines/scripts/slurm_steps_probe.sh
  ${PROJECT_SOURCE_DIR}/cli/plan/scripts/container.sh
  ${PROJECT_SOURCE_DIR}/cli/plan/scripts/environment.sh
  ${PROJECT_SOURCE_DIR}/cli/plan/scripts/keep_ranks.sh
  ${PROJECT_SOURCE_DIR}/cli/plan/scripts/launch.sh
  ${PROJECT_SOURCE_DIR}/cli/plan/scripts/ready.sh
  ${PROJECT_SOURCE_DIR}/cli/plan/scripts/software.sh
  ${PROJECT_SOURCE_DIR}/cli/plan/scripts/torchrun.sh
  ${PROJECT_SOURCE_DIR}/cli/plan/scripts/words.sh
  ${PROJECT_SOURCE_DIR}/cli/ready/scripts/install_conda.py
  ${PROJECT_SOURCE_DIR}/cli/ready/scripts/python_packages.py
  ${PROJECT_SOURCE_DIR}/cli/ready/scripts/read_requirements.py
  ${PROJECT_SOURCE_DIR}/cli/ready/scripts/solve_conda.py)
dtool_embed(${PROJECT_BINARY_DIR}/generated/cli/completion_scripts.h dtool::cli::completion_scripts KEEP_COMMENTS
  ${PROJECT_SOURCE_DIR}/cli/shell/bash_completion.sh
  ${PROJECT_SOURCE_DIR}/cli/shell/fish_completion.fish
  ${PROJECT_SOURCE_DIR}/cli/shell/zsh_completion.zsh)
file(GLOB experiments CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/trainer/experiments/*.toml)
dtool_embed(${PROJECT_BINARY_DIR}/generated/trainer/experiments/shipped.h dtool::trainer::experiments KEEP_COMMENTS TABLE ${experiments})
add_library(dtool_cli STATIC
  cli/assignments.cpp
  cli/command_line.cpp
  cli/command_output.cpp
  cli/console.cpp
  cli/copy/copy.cpp
  cli/copy/copy_to_hosts.cpp
  cli/copy/fetch.cpp
  cli/copy/fetch_plan.cpp
  cli/engines/engine.cpp
  cli/engines/gridengine.cpp
  cli/engines/mpi.cpp
  cli/engines/scheduler.cpp
  cli/engines/slurm.cpp
  cli/host_options.cpp
  cli/host_output.cpp
  cli/hosts/check.cpp
  cli/hosts/check_facts.cpp
  cli/hosts/clean.cpp
  cli/hosts/command.cpp
  cli/hosts/config.cpp
  cli/hosts/disconnect.cpp
  cli/hosts/hosts.cpp
  cli/hosts/install.cpp
  cli/hosts/listener_trial.cpp
  cli/hosts/trust.cpp
  cli/hosts_from.cpp
  cli/kill/end_run.cpp
  cli/kill/kill.cpp
  cli/large_texts.cpp
  cli/logs/attach.cpp
  cli/logs/follow.cpp
  cli/logs/log_lines.cpp
  cli/logs/log_output.cpp
  cli/logs/logs.cpp
  cli/options.cpp
  cli/plan/code_tree.cpp
  cli/plan/environment.cpp
  cli/plan/experiment.cpp
  cli/plan/flags.cpp
  cli/plan/plan.cpp
  cli/plan/program_words.cpp
  cli/plot/chart.cpp
  cli/plot/panel.cpp
  cli/plot/picture.cpp
  cli/plot/plot.cpp
  cli/plot/plot_sources.cpp
  cli/ready/check_hosts.cpp
  cli/ready/conda_packages.cpp
  cli/ready/lacks.cpp
  cli/ready/supply_environment.cpp
  cli/ready/python_packages.cpp
  cli/ready/start_jobs.cpp
  cli/ready/trainer_bundle.cpp
  cli/ready/tree_push.cpp
  cli/record/comparison.cpp
  cli/record/record.cpp
  cli/record/recorded.cpp
  cli/run/earlier_code.cpp
  cli/run/earlier_outputs.cpp
  cli/run/earlier_run.cpp
  cli/run/make_plan.cpp
  cli/run/make_ready.cpp
  cli/run/run_report.cpp
  cli/run/run.cpp
  cli/run/start_run.cpp
  cli/settings.cpp
  cli/shell/completion.cpp
  cli/shell/man_page.cpp
  cli/visit/exec.cpp
  cli/visit/forward.cpp
  cli/visit/ssh.cpp
  cli/visit/ssh_config.cpp
  cli/visit/tensorboard.cpp
  cli/watch/diff.cpp
  cli/watch/find_run.cpp
  cli/watch/list.cpp
  cli/watch/machine_status.cpp
  cli/watch/record_end.cpp
  cli/watch/run_status.cpp
  cli/watch/show.cpp
  cli/watch/status.cpp
  cli/watch/status_answer.cpp
  cli/watch/status_table.cpp)
dtool_join_sources(dtool_cli 12)
target_link_libraries(dtool_cli PUBLIC dtool_warnings dtool_ssh dtool_sync dtool_killfiles fmt::fmt
  PRIVATE PkgConfig::tomlplusplus PUBLIC
  nlohmann_json::nlohmann_json CLI11::CLI11)
add_executable(dtool cli/shell/main.cpp)
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
