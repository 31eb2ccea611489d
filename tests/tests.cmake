# SPDX-License-Identifier: MIT
# Included by the project's CMakeLists.txt.
# The tests' own code is compiled without optimization (-O0), a quarter faster.
# ---- tests/unit: no network, no clock
if(DTOOL_TESTS)
  enable_testing()
  find_package(GTest REQUIRED)
  include(GoogleTest)
  add_executable(unit_tests
    tests/unit/cli/assignments_test.cpp
    tests/unit/cli/command_line_test.cpp
    tests/unit/cli/copy/data_test.cpp
    tests/unit/cli/copy/fetch_plan_test.cpp
    tests/unit/cli/engines/mpi_test.cpp
    tests/unit/cli/engines/scheduler_text_test.cpp
    tests/unit/cli/engines/slurm_text_test.cpp
    tests/unit/cli/failures_test.cpp
    tests/unit/cli/flag_values_test.cpp
    tests/unit/cli/host_options_test.cpp
    tests/unit/cli/host_output_test.cpp
    tests/unit/cli/hosts/check_facts_test.cpp
    tests/unit/cli/hosts/clean_test.cpp
    tests/unit/cli/hosts/command_test.cpp
    tests/unit/cli/hosts/listener_trial_test.cpp
    tests/unit/cli/hosts/hosts_test.cpp
    tests/unit/cli/hosts_from_test.cpp
    tests/unit/cli/kill/end_run_test.cpp
    tests/unit/cli/kill/kill_test.cpp
    tests/unit/cli/logs/log_follow_test.cpp
    tests/unit/cli/logs/log_lines_test.cpp
    tests/unit/cli/logs/log_stream_test.cpp
    tests/unit/cli/logs/since_test.cpp
    tests/unit/cli/plan/code_tree_test.cpp
    tests/unit/cli/plan/environment_test.cpp
    tests/unit/cli/plan/experiment_test.cpp
    tests/unit/cli/plan/exports_test.cpp
    tests/unit/cli/plan/listener_test.cpp
    tests/unit/cli/plan/plan_test.cpp
    tests/unit/cli/plan/program_words_test.cpp
    tests/unit/cli/plot/axis_test.cpp
    tests/unit/cli/plot/comm_rows_test.cpp
    tests/unit/cli/plot/metrics_test.cpp
    tests/unit/cli/plot/plot_test.cpp
    tests/unit/cli/ready/check_hosts_test.cpp
    tests/unit/cli/ready/environment_lacks_test.cpp
    tests/unit/cli/ready/sending_progress_test.cpp
    tests/unit/cli/ready/start_jobs_test.cpp
    tests/unit/cli/record/new_run_test.cpp
    tests/unit/cli/record/record_test.cpp
    tests/unit/cli/run/earlier_outputs_test.cpp
    tests/unit/cli/run/earlier_run_test.cpp
    tests/unit/cli/run/resume_test.cpp
    tests/unit/cli/run/start_run_test.cpp
    tests/unit/cli/settings_test.cpp
    tests/unit/cli/shell/completion_test.cpp
    tests/unit/cli/terminal_text_test.cpp
    tests/unit/cli/visit/exec_test.cpp
    tests/unit/cli/watch/cause_test.cpp
    tests/unit/cli/watch/list_table_test.cpp
    tests/unit/cli/watch/machine_status_test.cpp
    tests/unit/cli/watch/run_states_test.cpp
    tests/unit/cli/watch/status_answer_test.cpp
    tests/unit/cli/watch/status_table_test.cpp
    tests/unit/disk_steps.cpp
    tests/unit/killfiles/channel/channel_test.cpp
    tests/unit/killfiles/channel/sha256_test.cpp
    tests/unit/killfiles/channel/watch_test.cpp
    tests/unit/killfiles/channel/wire_test.cpp
    tests/unit/killfiles/host_identity_test.cpp
    tests/unit/killfiles/killfile_allenact_test.cpp
    tests/unit/killfiles/killfile_folder_test.cpp
    tests/unit/killfiles/killfile_text_test.cpp
    tests/unit/killfiles/nearest_test.cpp
    tests/unit/killfiles/run_test.cpp
    tests/unit/killfiles/strict_toml_test.cpp
    tests/unit/killfiles/toml_bytes_test.cpp
    tests/unit/killfiles/version_test.cpp
    tests/unit/killfiles/whole_file_test.cpp
    tests/unit/main.cpp
    tests/unit/ssh/config/client_config_peer_test.cpp
    tests/unit/ssh/config/client_config_test.cpp
    tests/unit/ssh/config/config_block_test.cpp
    tests/unit/ssh/config/config_time_test.cpp
    tests/unit/ssh/config/hostfile_test.cpp
    tests/unit/ssh/fanout/fleet_test.cpp
    tests/unit/ssh/fanout/host_program_test.cpp
    tests/unit/ssh/fanout/remote_shell_test.cpp
    tests/unit/ssh/fanout/serving_program_test.cpp
    tests/unit/ssh/fanout/shared_output_test.cpp
    tests/unit/ssh/host/answers/check_host_test.cpp
    tests/unit/ssh/host/answers/environment_list_test.cpp
    tests/unit/ssh/host/answers/gpus_test.cpp
    tests/unit/ssh/host/answers/lacks_test.cpp
    tests/unit/ssh/host/answers/log_filter_test.cpp
    tests/unit/ssh/host/answers/other_processor_test.cpp
    tests/unit/ssh/host/answers/python_environment_test.cpp
    tests/unit/ssh/host/answers/pytorch_test.cpp
    tests/unit/ssh/host/answers/status_test.cpp
    tests/unit/ssh/host/answers/survey_test.cpp
    tests/unit/ssh/host/answers/trainers_test.cpp
    tests/unit/ssh/host/answers/trial_test.cpp
    tests/unit/ssh/host/answers/used_by_runs_test.cpp
    tests/unit/ssh/host/cause_place_test.cpp
    tests/unit/ssh/host/child_test.cpp
    tests/unit/ssh/host/earlier_failure_test.cpp
    tests/unit/ssh/host/explaining_line_test.cpp
    tests/unit/ssh/host/files_test.cpp
    tests/unit/ssh/host/holder_test.cpp
    tests/unit/ssh/host/identity_test.cpp
    tests/unit/ssh/host/job_files_test.cpp
    tests/unit/ssh/host/kill_test.cpp
    tests/unit/ssh/host/log_times_test.cpp
    tests/unit/ssh/host/members_test.cpp
    tests/unit/ssh/host/network_test.cpp
    tests/unit/ssh/host/own_program_test.cpp
    tests/unit/ssh/host/process_table_test.cpp
    tests/unit/ssh/host/rank_log_test.cpp
    tests/unit/ssh/host/record_steps_test.cpp
    tests/unit/ssh/host/session/coordinator_test.cpp
    tests/unit/ssh/host/session/guard_test.cpp
    tests/unit/ssh/host/session/job_cause_test.cpp
    tests/unit/ssh/host/session/job_test.cpp
    tests/unit/ssh/host/session/kept_ranks_test.cpp
    tests/unit/ssh/host/session/last_words_test.cpp
    tests/unit/ssh/host/session/limits_test.cpp
    tests/unit/ssh/host/session/line_merger_test.cpp
    tests/unit/ssh/host/session/link_state_test.cpp
    tests/unit/ssh/host/session/machine_test.cpp
    tests/unit/ssh/host/session/merging_test.cpp
    tests/unit/ssh/host/session/port_holder_test.cpp
    tests/unit/ssh/host/session/port_state_test.cpp
    tests/unit/ssh/host/session/rank_logs_test.cpp
    tests/unit/ssh/host/session/rank_test.cpp
    tests/unit/ssh/host/session/ranks_test.cpp
    tests/unit/ssh/host/session/report_test.cpp
    tests/unit/ssh/host/session/reports_over_tcp_test.cpp
    tests/unit/ssh/host/session/session_test.cpp
    tests/unit/ssh/host/session/supervised_session_test.cpp
    tests/unit/ssh/host/session/supervision_test.cpp
    tests/unit/ssh/host/start_job_test.cpp
    tests/unit/ssh/host/strangers_test.cpp
    tests/unit/ssh/host/unseen_test.cpp
    tests/unit/ssh/host/versions_test.cpp
    tests/unit/ssh/host_pattern_peer_test.cpp
    tests/unit/ssh/host_pattern_test.cpp
    tests/unit/ssh/host_request_test.cpp
    tests/unit/ssh/host_test.cpp
    tests/unit/ssh/kept/connection_key_test.cpp
    tests/unit/ssh/keys/identity_test.cpp
    tests/unit/ssh/keys/known_hosts_peer_test.cpp
    tests/unit/ssh/keys/known_hosts_test.cpp
    tests/unit/ssh/machine/fd_bytes_test.cpp
    tests/unit/ssh/machine/home_folder_test.cpp
    tests/unit/ssh/machine/process_test.cpp
    tests/unit/ssh/machine/reactor_test.cpp
    tests/unit/ssh/machine/run_to_end_test.cpp
    tests/unit/ssh/machine/shell_words_test.cpp
    tests/unit/ssh/program/master_protocol_test.cpp
    tests/unit/ssh/program/program_choice_test.cpp
    tests/unit/ssh/program/program_test.cpp
    tests/unit/ssh/quote_test.cpp
    tests/unit/ssh/screen_job_test.cpp
    tests/unit/ssh/script_test.cpp
    tests/unit/ssh/session/agent_test.cpp
    tests/unit/ssh/session/connector_test.cpp
    tests/unit/ssh/session/host_key_test.cpp
    tests/unit/ssh/session/jump_test.cpp
    tests/unit/ssh/session/login_output_test.cpp
    tests/unit/ssh/session/session_test.cpp
    tests/unit/ssh/session/ssh_connection_test.cpp
    tests/unit/ssh/session/tcp_test.cpp
    tests/unit/ssh/silent_hosts_test.cpp
    tests/unit/ssh/trace_test.cpp
    tests/unit/ssh/wire/frames_test.cpp
    tests/unit/ssh/wire/words_test.cpp)
  # Of random tests, rapidcheck finds the shortest case that fails. Not every system has it.
  find_package(rapidcheck CONFIG QUIET)
  if(TARGET rapidcheck)
    target_sources(unit_tests PRIVATE tests/unit/cli/large_texts_test.cpp)
    target_link_libraries(unit_tests PRIVATE rapidcheck)
  endif()
  target_compile_definitions(unit_tests PRIVATE DTOOL_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  find_program(DTOOL_EMULATOR qemu-${other_processor}-static)
  set(emulator ${DTOOL_EMULATOR})
  if(NOT DTOOL_EMULATOR)
    set(emulator "")
  endif()
  set_source_files_properties(tests/unit/ssh/host/answers/other_processor_test.cpp PROPERTIES
    COMPILE_DEFINITIONS "DTOOL_OTHER_HOST_FILE=\"${DTOOL_OTHER_HOST_FILE}\";DTOOL_EMULATOR=\"${emulator}\"")
  set_source_files_properties(tests/unit/cli/plan/plan_test.cpp PROPERTIES
    COMPILE_DEFINITIONS DTOOL_HOST_FILE="${DTOOL_HOST_FILE}")
  target_link_libraries(unit_tests PRIVATE dtool_warnings dtool_ssh dtool_killfiles dtool_cli
    PkgConfig::tomlplusplus Boost::headers Threads::Threads GTest::gtest)
  target_compile_options(unit_tests PRIVATE -O0)
  dtool_join_sources(unit_tests 12)
  gtest_discover_tests(unit_tests PROPERTIES LABELS unit TIMEOUT 120 DISCOVERY_TIMEOUT 60)

  # The sync folder's, apart.
  add_executable(sync_tests
    tests/unit/disk_steps.cpp
    tests/unit/main.cpp
    tests/unit/ssh/host/cipher_test.cpp
    tests/unit/ssh/host/tree/copy_folder_test.cpp
    tests/unit/ssh/host/tree/guess_test.cpp
    tests/unit/ssh/host/tree/inside_test.cpp
    tests/unit/ssh/host/tree/mark_test.cpp
    tests/unit/ssh/host/tree/own_tree_test.cpp
    tests/unit/ssh/host/tree/package_reader_test.cpp
    tests/unit/ssh/host/tree/package_server_test.cpp
    tests/unit/ssh/host/tree/place_tree_test.cpp
    tests/unit/ssh/host/tree/relayed_parcels_test.cpp
    tests/unit/ssh/host/tree/take_parcel_test.cpp
    tests/unit/sync/contents_test.cpp
    tests/unit/sync/copy/copying_test.cpp
    tests/unit/sync/copy/parcel_run_test.cpp
    tests/unit/sync/copy/parcels_test.cpp
    tests/unit/sync/every_kind_test.cpp
    tests/unit/sync/exclude_test.cpp
    tests/unit/sync/fetched_folder_test.cpp
    tests/unit/sync/git_files_test.cpp
    tests/unit/sync/kept_listings_test.cpp
    tests/unit/sync/listing_test.cpp
    tests/unit/sync/look_test.cpp
    tests/unit/sync/open_folder_test.cpp
    tests/unit/sync/other_kinds_test.cpp
    tests/unit/sync/pull_test.cpp
    tests/unit/sync/push/push_every_way_test.cpp
    tests/unit/sync/push/push_faults_test.cpp
    tests/unit/sync/push/push_steps_test.cpp
    tests/unit/sync/push/push_test.cpp
    tests/unit/sync/push/relay_push_test.cpp
    tests/unit/sync/restored_tree_test.cpp
    tests/unit/sync/rsync_test.cpp
    tests/unit/sync/schedule_simulation_test.cpp
    tests/unit/sync/schedule_test.cpp
    tests/unit/sync/staging_test.cpp
    tests/unit/sync/tree_test.cpp)
  target_link_libraries(sync_tests PRIVATE dtool_warnings dtool_sync GTest::gtest)
  target_compile_options(sync_tests PRIVATE -O0)
  dtool_join_sources(sync_tests 12)
  gtest_discover_tests(sync_tests PROPERTIES LABELS unit DISCOVERY_TIMEOUT 60)
endif()

# ---- tests/simulation: whole supervised runs in one thread; other seeds by hand
if(DTOOL_TESTS)
  add_executable(simulate_runs
    tests/simulation/launch_scenario.cpp
    tests/simulation/launches.cpp
    tests/simulation/main.cpp
    tests/simulation/promises.cpp
    tests/simulation/scenario.cpp
    tests/simulation/shortened.cpp
    tests/simulation/simulated_disk.cpp
    tests/simulation/simulated_host.cpp
    tests/simulation/simulated_link.cpp
    tests/simulation/world.cpp)
  target_link_libraries(simulate_runs PRIVATE dtool_warnings dtool_host dtool_ssh dtool_killfiles dtool_cli)
  add_test(NAME simulation.runs_keep_their_promises COMMAND simulate_runs 1 10000)
  set_tests_properties(simulation.runs_keep_their_promises PROPERTIES LABELS "unit;fast" TIMEOUT 300 COST 60)
endif()

# ---- tests/fuzz: spoilt input for each parser, the same on every run
if(DTOOL_TESTS)
  set(fuzz_main GTest::gtest_main)
  if(DTOOL_SANITIZE MATCHES fuzzer)  # tests/libfuzzer, by clang, which brings libFuzzer's driver
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libclang_rt.fuzzer_no_main-${CMAKE_SYSTEM_PROCESSOR}.a
      OUTPUT_VARIABLE fuzzer_driver OUTPUT_STRIP_TRAILING_WHITESPACE)
    add_library(fuzz_main OBJECT tests/fuzz/libfuzzer.cpp)
    target_link_libraries(fuzz_main PUBLIC dtool_warnings GTest::gtest ${fuzzer_driver})
    set(fuzz_main fuzz_main)
  endif()
  add_executable(fuzz_tests
    tests/fuzz/answers_fuzz.cpp
    tests/fuzz/client_config_fuzz.cpp
    tests/fuzz/config_kwargs_fuzz.cpp
    tests/fuzz/decisions_fuzz.cpp
    tests/fuzz/host_pattern_fuzz.cpp
    tests/fuzz/hostfile_fuzz.cpp
    tests/fuzz/killfile_fuzz.cpp
    tests/fuzz/known_hosts_fuzz.cpp
    tests/fuzz/listeners_fuzz.cpp
    tests/fuzz/messages_fuzz.cpp
    tests/fuzz/package_fuzz.cpp
    tests/fuzz/relay_fuzz.cpp
    tests/fuzz/shell_words_fuzz.cpp)
  target_compile_definitions(fuzz_tests PRIVATE DTOOL_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_link_libraries(fuzz_tests PRIVATE dtool_warnings dtool_ssh dtool_killfiles dtool_cli
    PkgConfig::tomlplusplus ${fuzz_main})
  dtool_join_sources(fuzz_tests 7)
  if(NOT DTOOL_SANITIZE MATCHES fuzzer)
    gtest_discover_tests(fuzz_tests PROPERTIES LABELS fuzz TIMEOUT 120 DISCOVERY_TIMEOUT 60)
    set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${PROJECT_SOURCE_DIR}/tests/fast.cmake)
  endif()
endif()

# Lets the tests begin spread over the run, by COST from `most` seconds down to 0: what computes all its time (the trainer's
# stories, checks of the sources) runs beside what waits (for schedulers, for hosts that are lost), not beside its like.
function(dtool_spread_starts most)
  list(LENGTH ARGN count)
  set(left ${count})
  foreach(test IN LISTS ARGN)
    math(EXPR cost "${most} * ${left} / ${count}")
    set_tests_properties(${test} PROPERTIES COST ${cost})
    math(EXPR left "${left} - 1")
  endforeach()
endfunction()

# ---- tests/check_sources: what no compiler checks, one test a check
if(DTOOL_TESTS)
  set(checks includes house terminal library_types archives co_await layout shell words cut_comments schedulers opening_comments licenses
    contents doc_paths past_faults)
  foreach(check IN LISTS checks)
    add_test(NAME sources.${check} COMMAND ${PROJECT_SOURCE_DIR}/tests/check_sources ${check})
  endforeach()
  add_test(NAME sources.checks_can_fail COMMAND ${PROJECT_SOURCE_DIR}/tests/check_sources_can_fail)
  add_test(NAME sources.dependencies COMMAND ${PROJECT_SOURCE_DIR}/tests/dependencies_can_fail)
  add_test(NAME sources.guards COMMAND ${PROJECT_SOURCE_DIR}/tests/mutants check)
  # A few of them each time; all by hand.
  add_test(NAME sources.guards_are_seen COMMAND ${PROJECT_SOURCE_DIR}/tests/mutants guards 2)
  add_test(NAME sources.rules_are_seen COMMAND ${PROJECT_SOURCE_DIR}/tests/mutants rules 1)
  set_tests_properties(sources.guards_are_seen sources.rules_are_seen
    PROPERTIES ENVIRONMENT DTOOL_BUILD=${PROJECT_BINARY_DIR})
  list(REMOVE_ITEM checks shell)
  list(TRANSFORM checks PREPEND sources.)
  # The long ones begin first.
  set(checks sources.shell sources.checks_can_fail sources.guards_are_seen sources.rules_are_seen sources.dependencies sources.guards ${checks})
  dtool_spread_starts(80 ${checks})
  set_tests_properties(${checks}
    PROPERTIES LABELS sources SKIP_RETURN_CODE 77 TIMEOUT 400)
endif()

# ---- tests/trainer: unit tests, and scripts that drive dtool-trainer, one a behaviour, named after it
if(DTOOL_TESTS AND DTOOL_TRAINER)
  add_executable(trainer_tests
    tests/trainer/checkpoint_writer_test.cpp
    tests/trainer/comm_options_test.cpp
    tests/trainer/csv_test.cpp
    tests/trainer/data_files_test.cpp
    tests/trainer/digits_test.cpp
    tests/trainer/download_test.cpp
    tests/trainer/dtool_env_test.cpp
    tests/trainer/environment_settings_test.cpp
    tests/trainer/exchange_plan_test.cpp
    tests/trainer/experiment_test.cpp
    tests/trainer/file_settings_test.cpp
    tests/trainer/files_test.cpp
    tests/trainer/greeting_test.cpp
    tests/trainer/idx_test.cpp
    tests/trainer/launch_test.cpp
    tests/trainer/layers_test.cpp
    tests/trainer/libraries_test.cpp
    tests/trainer/mini_batches_test.cpp
    tests/trainer/objectnav_camera_test.cpp
    tests/trainer/objectnav_episode_test.cpp
    tests/trainer/objectnav_house_test.cpp
    tests/trainer/objectnav_samplers_test.cpp
    tests/trainer/objectnav_settings_test.cpp
    tests/trainer/objectnav_view_test.cpp
    tests/trainer/pipeline_test.cpp
    tests/trainer/policy_settings_test.cpp
    tests/trainer/process_environments_test.cpp
    tests/trainer/progress_test.cpp
    tests/trainer/random_values_test.cpp
    tests/trainer/safetensors_test.cpp
    tests/trainer/sampler_test.cpp
    tests/trainer/schedule_test.cpp
    tests/trainer/shared_values_test.cpp
    tests/trainer/store_server_test.cpp
    tests/trainer/transfer_progress_test.cpp
    tests/trainer/visible_gpus_test.cpp
    tests/unit/disk_steps.cpp)
  target_compile_definitions(trainer_tests PRIVATE DTOOL_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  foreach(kind example faulty)  # workers of environments
    string(TOUPPER ${kind} upper)
    add_executable(${kind}_worker tests/trainer/${kind}_worker.cpp)
    target_link_libraries(${kind}_worker PRIVATE dtool_warnings)
    target_compile_definitions(trainer_tests PRIVATE DTOOL_${upper}_WORKER="$<TARGET_FILE:${kind}_worker>")
    add_dependencies(trainer_tests ${kind}_worker)
  endforeach()
  target_link_libraries(trainer_tests PRIVATE dtool_trainer GTest::gtest_main)
  target_compile_options(trainer_tests PRIVATE -O0)
  dtool_join_sources(trainer_tests 9)
  gtest_discover_tests(trainer_tests PROPERTIES LABELS trainer DISCOVERY_TIMEOUT 60)
  add_executable(trainer_fuzz_tests
    tests/fuzz/data_fuzz.cpp
    tests/fuzz/environments_fuzz.cpp
    tests/fuzz/greeting_fuzz.cpp
    tests/fuzz/safetensors_fuzz.cpp)
  target_compile_definitions(trainer_fuzz_tests PRIVATE DTOOL_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_link_libraries(trainer_fuzz_tests PRIVATE dtool_trainer ${fuzz_main})
  if(NOT DTOOL_SANITIZE MATCHES fuzzer)
    gtest_discover_tests(trainer_fuzz_tests PROPERTIES LABELS fuzz TIMEOUT 120 DISCOVERY_TIMEOUT 60)
  endif()
  add_executable(trainer_torch_tests
    tests/trainer/actions_test.cpp
    tests/trainer/advantage_statistics_test.cpp
    tests/trainer/checkpoint_keeper_test.cpp
    tests/trainer/comm_test.cpp
    tests/trainer/data_parallel_test.cpp
    tests/trainer/data_set_test.cpp
    tests/trainer/encoded_policy_test.cpp
    tests/trainer/environments_test.cpp
    tests/trainer/gae_test.cpp
    tests/trainer/graphed_step_test.cpp
    tests/trainer/kept_samplers_test.cpp
    tests/trainer/links_test.cpp
    tests/trainer/loss_window_test.cpp
    tests/trainer/masked_gru_test.cpp
    tests/trainer/network_test.cpp
    tests/trainer/objectnav_policy_test.cpp
    tests/trainer/optimizer_test.cpp
    tests/trainer/ppo_loss_test.cpp
    tests/trainer/precision_test.cpp
    tests/trainer/recorded_step_test.cpp
    tests/trainer/return_scale_test.cpp
    tests/trainer/stragglers_test.cpp
    tests/trainer/sum_rows_test.cpp
    tests/trainer/tokens_test.cpp
    tests/trainer/training_test.cpp
    tests/trainer/uncaught_test.cpp
    tests/trainer/view_embedding_test.cpp)
  target_compile_definitions(trainer_torch_tests PRIVATE DTOOL_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_link_libraries(trainer_torch_tests PRIVATE dtool_trainer_torch GTest::gtest_main)
  target_compile_options(trainer_torch_tests PRIVATE -O0)
  dtool_join_sources(trainer_torch_tests 6)
  gtest_discover_tests(trainer_torch_tests PROPERTIES LABELS trainer DISCOVERY_TIMEOUT 60)
  add_library(break_on_signal MODULE tests/trainer/break_on_signal.cpp)
  target_link_libraries(break_on_signal PRIVATE dtool_warnings Threads::Threads)
  add_library(spoil_received MODULE tests/trainer/spoil_received.cpp)
  target_link_libraries(spoil_received PRIVATE dtool_warnings ${CMAKE_DL_LIBS})
  add_library(slow_disk MODULE tests/trainer/slow_disk.cpp)
  target_link_libraries(slow_disk PRIVATE dtool_warnings Threads::Threads ${CMAKE_DL_LIBS})
  foreach(behaviour
      a_checkpoint_due_at_an_epochs_end_is_kept
      a_download_goes_on_where_it_stopped
      a_failed_rank_is_named
      a_failing_mirror_is_followed_by_the_next
      a_loss_that_is_no_number_ends_the_run
      a_machine_holds_its_data_once
      a_run_validates_the_checkpoints_of_another
      a_slow_disk_stops_no_run
      a_terminal_has_a_bar_and_a_log_has_lines
      another_token_is_turned_away
      bfloat16_learns_as_float32_does
      checkpoints_take_no_more_memory
      comm_checks_what_it_measures
      comm_ends_when_a_rank_is_killed
      comm_mistakes_exit_with_2
      is_a_worker_under_other_launchers
      downloads_once_a_machine
      environments_of_others_are_learned
      killed_fifty_times_it_ends_the_same
      learns_digits
      learns_from_arrays
      learns_from_csv_tables
      learns_mnist_on_three_ranks
      machines_that_disagree_are_refused
      missing_machines_are_named
      mistakes_exit_with_2
      mnist_is_downloaded_where_it_is_missing
      objectnav_goes_on_bit_for_bit
      objectnav_learns
      objectnav_on_two_ranks_equals_one
      resuming_is_bit_for_bit
      same_seed_gives_the_same_numbers
      signals_write_a_checkpoint
      rollout_mistakes_exit_with_2
      rollout_plays_an_episode_in_a_browser
      rollout_shows_an_episode
      says_what_it_is
      stages_and_schedules_take_effect
      strangers_change_nothing
      starts_under_torchrun_and_mpirun
      stragglers_rollouts_are_cut_short
      survivors_stop_when_a_rank_is_killed
      survivors_stop_when_a_rank_is_killed_as_it_loads
      survivors_stop_when_rank_0_is_killed
      tensorboard_reads_what_a_run_wrote
      trains_an_exported_module
      two_ranks_equal_one_with_the_whole_batch
      workers_end_with_their_supervisor)
    add_test(NAME trainer.${behaviour}
      COMMAND ${PROJECT_SOURCE_DIR}/tests/trainer/${behaviour}.sh $<TARGET_FILE:dtool-trainer>)
    set_tests_properties(trainer.${behaviour} PROPERTIES LABELS trainer SKIP_RETURN_CODE 77 TIMEOUT 300)
    list(APPEND trainings trainer.${behaviour})
  endforeach()
  dtool_spread_starts(80 ${trainings})
  set_tests_properties(trainer.killed_fifty_times_it_ends_the_same PROPERTIES TIMEOUT 900 COST 80)
  # PyTorch is 4.6 GB, which nobody expects of tests/run at home.
  add_test(NAME trainer.is_built_for_gpus WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
    COMMAND bash -c "[[ -n \${CI:-} ]] || { echo 'left out: it runs where CI is set, and as tests/cuda_build'; exit 77; }; tests/cuda_build")
  set_tests_properties(trainer.is_built_for_gpus PROPERTIES LABELS trainer SKIP_RETURN_CODE 77 TIMEOUT 1800 COST 240
    PROCESSORS 2)
endif()

# ---- tests/behaviour: the built programs on lab hosts, one script a behaviour, named after it
if(DTOOL_TESTS)
  enable_testing()
  if(TARGET dtool-trainer)
    set(trainer $<TARGET_FILE:dtool-trainer>)
  endif()
  foreach(behaviour
      a_build_outside_the_source_finds_the_experiments
      a_clock_set_wrong_does_no_harm
      a_container_holds_a_run_and_kill_empties_it
      a_ddp_script_in_python_runs_unchanged
      a_bad_network_slows_and_loses_nothing
      a_call_that_fails_breaks_no_promise
      a_failed_run_names_one_cause
      a_failed_run_starts_again
      a_failure_on_one_machine_ends_the_others
      a_failure_under_mpirun_names_its_cause
      a_followed_run_tells_how_it_ended
      a_full_disk_is_named_and_nothing_half_written_counts
      a_host_cut_off_for_good_is_named_and_the_others_go_on
      a_host_lost_under_mpirun_is_left_out
      a_host_that_hangs_holds_back_nobody
      a_host_that_lies_costs_seconds
      a_slow_host_holds_back_only_itself
      a_trainer_for_gpus_outside_a_pytorch_is_not_sent
      a_trainer_for_gpus_runs_under_a_scheduler
      a_trainer_for_gpus_uses_the_pytorch_of_a_container
      a_trainer_for_gpus_uses_the_pytorch_of_the_host
      a_trainer_from_a_wheel_uses_the_pytorch_beside_it
      a_training_on_this_machine_shows_its_curves
      a_kept_connection_is_used_only_while_all_is_as_it_was
      a_key_exchange_in_between_stops_nothing
      a_killed_training_is_resumed
      a_launcher_without_power_holds_nobody_up
      a_link_cut_for_seconds_interrupts_nothing
      a_rebooted_host_is_told_and_none_of_its_new_processes_are_touched
      a_copy_goes_around_hosts_that_others_cannot_reach
      a_requeued_training_ends_with_the_same_bytes
      a_resumed_program_finds_its_outputs
      a_run_gets_its_data_first
      a_run_goes_on_when_its_launcher_is_killed
      a_run_is_validated_on_another_machine
      a_run_that_cannot_start_starts_nothing
      a_script_that_is_not_here_is_told
      an_environment_in_the_code_serves_the_trainer
      an_experiment_needs_no_file_beside_it
      an_id_that_begins_anothers_names_its_own_run
      an_interrupted_copy_goes_on
      an_agent_that_waits_for_its_user_holds_up_nobody
      a_run_is_repeated_without_its_checkout
      a_run_is_written_down
      a_rerun_ends_with_the_same_bytes
      attach_gives_the_screen_and_the_terminal_back
      check_tells_what_each_host_has_and_lacks
      command_asks_before_it_uses_a_recorded_runs_hosts
      command_ends_the_others_when_one_fails
      command_gives_its_input_to_all_hosts
      command_writes_output_into_files
      command_hands_on_output_of_any_kind
      command_names_every_host_that_fails
      command_names_the_host_it_cannot_reach
      command_reports_a_host_that_dies_while_it_answers
      command_shows_output_in_each_style
      command_timeout_ends_the_command
      commands_at_once_each_have_their_connection
      completion_answers_in_each_shell
      config_sets_up_every_host
      copy_brings_files_back
      copy_brings_files_to_all_hosts
      conda_environments_are_the_same_everywhere
      environments_are_the_same_everywhere
      environments_hold_under_every_launcher
      dtool_host_comes_along_to_every_host
      each_run_has_its_own_tree
      every_flag_is_documented
      exec_and_ssh_go_where_a_run_is
      documented_lines_for_each_launcher_work
      every_launcher_trains_alike
      every_rank_has_its_log
      every_rank_is_told_its_place
      fetch_brings_each_machines_outputs
      fetch_stops_at_its_limits
      fetch_writes_nothing_outside_its_folder
      followed_logs_lose_nothing
      forward_brings_ports_here
      hosts_are_named_by_sets
      clean_deletes_what_is_unused
      gridengine_faults_are_told
      gridengine_jobs_go_on
      gridengine_takes_a_run
      harness_can_fail
      a_resumed_program_finds_what_it_wrote_in_its_tree
      holes_of_files_stay_holes
      packages_are_chosen_for_the_hosts_python
      unusual_servers_and_logins_work_or_are_named
      help_reads_well
      host_keys_and_certificates_are_judged_as_ssh_does
      hosts_behind_jump_hosts_are_lost_and_found
      hosts_behind_jump_hosts_are_reached
      hosts_that_share_a_folder_take_over_a_copy
      hosts_that_share_the_code_folder_are_sent_it_once
      hosts_of_other_systems_take_part
      hosts_that_lack_what_scripts_use_are_refused
      hosts_that_share_their_home_run_together
      hosts_without_screen_take_part
      input_of_any_size_arrives_with_its_end
      interrupt_lets_hosts_finish_and_a_second_leaves_them
      json_is_one_document
      keys_come_from_the_agent_and_from_files
      kill_claims_only_what_it_proves
      kill_ends_what_hides
      kill_ends_what_hops
      kill_finds_the_run_that_was_meant
      kill_leaves_programs_their_grace
      kill_meets_mpirun_on_its_way
      kill_meets_starts_and_other_kills
      kill_names_what_it_cannot_tell
      kill_stops_only_its_own_run
      kill_tells_users_apart
      kill_that_cannot_look_claims_nothing
      killed_training_leaves_a_checkpoint
      lab_ends_with_its_owner
      lab_gridengine_is_a_cluster
      lab_hosts_are_machines_of_their_own
      lab_hosts_behind_the_first
      lab_slurm_is_a_cluster
      labs_at_once_do_not_meet
      list_tells_the_state_of_runs
      launchers_at_once_each_get_their_run
      lines_of_other_tools_work
      lines_of_slurm_work
      logs_are_one_text
      man_pages_are_well_formed
      mistakes_in_commands_start_nothing
      frequent_mistakes_are_named_with_a_hint
      the_messages_people_meet_most_stay_as_they_are
      mpi_programs_speak_to_each_other
      mpirun_starts_every_rank
      mpirun_takes_the_network_between_the_hosts
      mpirun_that_cannot_start_starts_nothing
      mpirun_trains_as_ssh_does
      modules_are_loaded_on_each_host
      only_a_dropped_greeting_is_tried_again
      other_users_of_a_host_decide_nothing
      packages_need_what_they_say
      passwords_are_asked_at_the_terminal
      plot_draws_the_curves_of_runs
      programs_are_told_the_commit_of_their_code
      run_killed_at_any_moment_leaves_nothing_after_kill
      runs_of_earlier_versions_are_listed
      a_run_is_opened_by_ssh_and_tensorboard
      command_runs_as_root_with_one_password
      signals_end_dtool_at_every_wait
      slurm_and_mpirun_start_the_trainer
      slurm_faults_are_told
      slurm_is_waited_for
      slurm_jobs_go_on
      slurm_runs_are_rerun
      slurm_runs_keep_their_own_tree
      slurm_takes_a_run
      slurm_tasks_run_where_they_were_asked_to
      ssh_configuration_is_honoured
      status_tells_how_each_machine_is
      status_watches_until_the_run_ends
      hosts_pass_the_tree_on_to_hosts
      files_that_dtool_did_not_send_are_not_overwritten
      sync_sends_each_host_what_it_lacks
      the_next_command_opens_no_connection
      the_environment_that_was_named_is_used_or_refused
      the_port_for_reports_is_held_until_the_start
      the_trainer_comes_along_to_hosts_without_one
      text_from_outside_does_not_steer_the_terminal
      settings_of_a_folder_are_used_after_a_yes
      values_of_exports_are_seen_by_the_programs_alone
      what_others_made_runs_nothing
      three_hosts_train_mnist
      torchrun_starts_the_ranks_of_a_script
      trust_adds_unknown_keys_after_a_yes
      tables_fit_a_terminal_of_80_columns
      tutorial_commands_work
      unknown_hosts_are_trusted_with_one_command
      what_libssh_cannot_do_openssh_does
      what_two_commands_at_once_and_an_interrupt_leave
      words_arrive_unchanged
      many_hosts_are_shown_in_few_lines
      open_file_limits_are_raised_or_explained
      a_jump_host_with_the_usual_limits_loses_nobody)
    add_test(NAME behaviour.${behaviour} COMMAND ${PROJECT_SOURCE_DIR}/tests/behaviour/${behaviour}.sh)
    set_tests_properties(behaviour.${behaviour} PROPERTIES LABELS "behaviour;lab" SKIP_RETURN_CODE 77 TIMEOUT 180
      ENVIRONMENT "DTOOL=$<TARGET_FILE:dtool>;DTOOL_TRAINER=${trainer}")
    list(APPEND stories behaviour.${behaviour})
  endforeach()
  dtool_spread_starts(58 ${stories})
  # Slow ones begin first (COST: about their seconds), so that none is left alone at the end. Most of them wait: for rounds of a
  # scheduler, and for the minute after which a machine that is silent counts as lost.
  set(slow
      187 conda_environments_are_the_same_everywhere
      172 hosts_of_other_systems_take_part
      145 slurm_is_waited_for
      135 gridengine_faults_are_told
      135 gridengine_jobs_go_on
      116 signals_end_dtool_at_every_wait
      99 torchrun_starts_the_ranks_of_a_script
      99 lab_slurm_is_a_cluster
      88 slurm_jobs_go_on
      87 run_killed_at_any_moment_leaves_nothing_after_kill
      79 a_failed_run_names_one_cause
      78 a_call_that_fails_breaks_no_promise
      74 a_host_lost_under_mpirun_is_left_out
      70 a_failed_run_starts_again
      70 the_trainer_comes_along_to_hosts_without_one
      68 a_run_is_repeated_without_its_checkout
      67 an_interrupted_copy_goes_on
      65 gridengine_takes_a_run
      63 a_requeued_training_ends_with_the_same_bytes
      63 attach_gives_the_screen_and_the_terminal_back
      60 lab_gridengine_is_a_cluster
      50 the_messages_people_meet_most_stay_as_they_are)
  while(slow)
    list(POP_FRONT slow seconds behaviour)
    set_tests_properties(behaviour.${behaviour} PROPERTIES TIMEOUT 500 COST ${seconds})
  endwhile()
endif()

# A story that is in no list would never run.
file(READ ${CMAKE_CURRENT_LIST_FILE} lists)
file(GLOB stories CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/behaviour/*.sh ${PROJECT_SOURCE_DIR}/tests/trainer/*.sh)
foreach(file IN LISTS stories)
  file(STRINGS ${file} harness REGEX "^source .*/harness\\.sh")
  get_filename_component(name ${file} NAME_WE)
  if(harness AND NOT lists MATCHES "[ \n]${name}[ \n)]")
    message(FATAL_ERROR "tests/tests.cmake does not list ${name}")
  endif()
endforeach()

# ---- tests/bench: only when asked for, `cmake --build build --target bare_libssh`
add_executable(bare_libssh EXCLUDE_FROM_ALL tests/bench/bare_libssh.cpp)
target_link_libraries(bare_libssh PRIVATE dtool_warnings ssh)
add_executable(sync_tree EXCLUDE_FROM_ALL tests/bench/sync_tree.cpp)
target_link_libraries(sync_tree PRIVATE dtool_warnings dtool_sync)
if(DTOOL_TRAINER)
  add_executable(bench_digits_as_idx EXCLUDE_FROM_ALL tests/bench/digits_as_idx.cpp)
  target_link_libraries(bench_digits_as_idx PRIVATE dtool_trainer)
  add_executable(bench_objectnav_environment EXCLUDE_FROM_ALL tests/bench/objectnav_environment.cpp)
  target_link_libraries(bench_objectnav_environment PRIVATE dtool_trainer)
  add_executable(bench_training_floor EXCLUDE_FROM_ALL tests/bench/training_floor.cpp)
  target_link_libraries(bench_training_floor PRIVATE dtool_trainer_torch)
  add_executable(bench_objectnav_policy EXCLUDE_FROM_ALL tests/bench/objectnav_policy.cpp)
  target_link_libraries(bench_objectnav_policy PRIVATE dtool_trainer_torch)
  add_executable(bench_picture_encoders EXCLUDE_FROM_ALL tests/bench/picture_encoders.cpp)
  target_link_libraries(bench_picture_encoders PRIVATE dtool_trainer_torch)
endif()
