# SPDX-License-Identifier: MIT
# The second program, where LibTorch is. dtool-trainer itself needs none of it, so that it starts in
# milliseconds; dtool-trainer-worker does
if(DTOOL_TRAINER)
  include(trainer/libtorch.cmake)
  dtool_find_libtorch()
  find_package(ZLIB QUIET)
  find_package(CURL QUIET)
  find_package(OpenSSL QUIET COMPONENTS Crypto)
  if(DTOOL_LIBTORCH_PROBLEM OR NOT ZLIB_FOUND OR NOT CURL_FOUND OR NOT OPENSSL_FOUND)
    if(NOT DTOOL_LIBTORCH_PROBLEM)
      set(DTOOL_LIBTORCH_PROBLEM "it needs zlib, libcurl and libcrypto (zlib1g-dev libcurl4-openssl-dev libssl-dev)")
    endif()
    message(STATUS "dtool-trainer is left out: ${DTOOL_LIBTORCH_PROBLEM}")
    set(DTOOL_TRAINER OFF)
  endif()
endif()
if(DTOOL_TRAINER)
  add_library(dtool_trainer STATIC
    trainer/comm/exchange_plan.cpp
    trainer/comm/peer_link.cpp
    trainer/data/csv.cpp
    trainer/data/csv_data.cpp
    trainer/data/data_files.cpp
    trainer/data/data_offer.cpp
    trainer/data/data_settings.cpp
    trainer/data/download.cpp
    trainer/data/drawn_data.cpp
    trainer/data/idx.cpp
    trainer/data/sampler.cpp
    trainer/launch/greeting.cpp
    trainer/launch/launch.cpp
    trainer/launch/network.cpp
    trainer/launch/requests.cpp
    trainer/launch/workers.cpp
    trainer/ranks/shared_memory.cpp
    trainer/ranks/store_server.cpp
    trainer/report/console.cpp
    trainer/report/metrics.cpp
    trainer/report/progress_log.cpp
    trainer/report/written_file.cpp
    trainer/settings/comm_options.cpp
    trainer/settings/command_line.cpp
    trainer/settings/experiment.cpp
    trainer/settings/model_settings.cpp
    trainer/settings/toml_reader.cpp
    trainer/settings/train_settings.cpp
    trainer/training/checkpoint_writer.cpp
    trainer/training/safetensors.cpp)
  target_include_directories(dtool_trainer PRIVATE ${PROJECT_BINARY_DIR}/generated)
  target_link_libraries(dtool_trainer PUBLIC dtool_warnings dtool_channel dtool_killfiles fmt::fmt PRIVATE Boost::headers nlohmann_json::nlohmann_json ZLIB::ZLIB
    CURL::libcurl OpenSSL::Crypto)

  add_library(dtool_trainer_torch STATIC
    trainer/comm/comm.cpp
    trainer/comm/comm_trial.cpp
    trainer/comm/links.cpp
    trainer/data/data_set.cpp
    trainer/data/npy.cpp
    trainer/data/provide_data.cpp
    trainer/model/model.cpp
    trainer/model/network.cpp
    trainer/ranks/gpu.cpp
    trainer/ranks/process_group.cpp
    trainer/ranks/rendezvous.cpp
    trainer/ranks/request_exchange.cpp
    trainer/ranks/run_store.cpp
    trainer/training/checkpoint_keeper.cpp
    trainer/training/checkpoint_reader.cpp
    trainer/training/data_parallel.cpp
    trainer/training/graphed_step.cpp
    trainer/training/optimizer.cpp
    trainer/training/snapshot.cpp
    trainer/training/training.cpp
    trainer/worker.cpp)
  target_link_libraries(dtool_trainer_torch PUBLIC dtool_trainer dtool_libtorch)
  # The sums of an all-reduce.
  set_source_files_properties(trainer/comm/exchange_plan.cpp PROPERTIES COMPILE_OPTIONS "-O3")
  # Adam's loop: no errno from sqrt, so that it is vectorised; nothing fused, so that every processor rounds alike.
  set_source_files_properties(trainer/data/sampler.cpp trainer/training/optimizer.cpp PROPERTIES COMPILE_OPTIONS "-O3;-fno-math-errno;-ffp-contract=off")

  # The folders that the table of workloads names bring their sources themselves.
  file(STRINGS trainer/settings/workloads.def DTOOL_WORKLOADS REGEX "^DTOOL_WORKLOAD")
  list(TRANSFORM DTOOL_WORKLOADS REPLACE ".*, *(.*)\\).*" "\\1")
  list(REMOVE_DUPLICATES DTOOL_WORKLOADS)
  foreach(folder IN LISTS DTOOL_WORKLOADS)
    include(trainer/${folder}/${folder}.cmake)
  endforeach()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS trainer/settings/workloads.def)
  # Environments and data are computed here, not waited for. What includes LibTorch waits for that: -O1 is as fast.
  target_compile_options(dtool_trainer PRIVATE -O2)
  dtool_join_sources(dtool_trainer 12)
  dtool_join_sources(dtool_trainer_torch 24 ACROSS_FOLDERS)

  add_executable(dtool-trainer trainer/main.cpp)
  # For LibTorch's version only.
  target_include_directories(dtool-trainer SYSTEM PRIVATE ${TORCH_INCLUDE_DIR} ${TORCH_INCLUDE_DIR}/torch/csrc/api/include)
  target_compile_definitions(dtool-trainer PRIVATE ${DTOOL_LIBTORCH_FMT})
  target_link_libraries(dtool-trainer PRIVATE dtool_trainer)
  target_link_options(dtool-trainer PRIVATE -Wl,--as-needed)
  add_executable(dtool-trainer-worker trainer/worker_main.cpp)
  target_link_libraries(dtool-trainer-worker PRIVATE dtool_trainer_torch)
  # An installed worker finds a LibTorch outside the system's folders where the built one found it.
  set_target_properties(dtool-trainer-worker PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
  add_dependencies(dtool-trainer dtool-trainer-worker)

  foreach(backend GLOO NCCL)
    if(DTOOL_TRAINER_${backend})
      target_compile_definitions(dtool_trainer PUBLIC DTOOL_TRAINER_${backend})
      list(APPEND DTOOL_BACKENDS ${backend})
    endif()
  endforeach()
  message(STATUS "dtool-trainer: LibTorch in ${TORCH_INCLUDE_DIR}, backends ${DTOOL_BACKENDS}")
  install(TARGETS dtool-trainer dtool-trainer-worker RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT trainer)
  install(DIRECTORY trainer/experiments DESTINATION ${CMAKE_INSTALL_DATADIR}/dtool COMPONENT trainer
    FILES_MATCHING PATTERN "*.toml")
endif()
