# SPDX-License-Identifier: MIT
# Finds LibTorch, gloo and NCCL for dtool-trainer: Debian's packages, a PyTorch that pip installed, or LibTorch from pytorch.org.
# LibTorch's own package file is not asked, for where LibTorch has CUDA it wants nvcc and cuDNN and ends the configuration without
# them; the trainer is plain C++ and needs neither (docs/building.md). Included by CMakeLists.txt.

# The folders that pip's CUDA packages put below site-packages/nvidia: one a library, or all in one.
function(dtool_pip_cuda_folders torch_root result)
  file(GLOB folders LIST_DIRECTORIES true ${torch_root}/../nvidia/*/include)
  list(TRANSFORM folders REPLACE "/include$" "")
  set(${result} ${folders} PARENT_SCOPE)
endfunction()

# The CUDA parts of the LibTorch in `root`. Sets `missing` in the caller to a sentence where something lacks, else extends
# dtool_libtorch and sets DTOOL_TRAINER_NCCL.
function(dtool_find_libtorch_cuda root)
  dtool_pip_cuda_folders(${root} pip_folders)
  # LibTorch's own first: the layout of its classes depends on NCCL's version.
  set(places HINTS ${pip_folders} ENV CUDA_HOME ENV CUDA_PATH ${CUDA_TOOLKIT_ROOT_DIR} /usr/local/cuda)
  find_library(C10_CUDA_LIBRARY c10_cuda HINTS ${root}/lib)
  find_library(CUDART_LIBRARY NAMES cudart libcudart.so.13 libcudart.so.12 libcudart.so.11.0 NAMES_PER_DIR ${places}
    PATH_SUFFIXES lib lib64)
  find_path(CUDART_INCLUDE_DIR cuda_runtime_api.h ${places} PATH_SUFFIXES include)
  find_path(CUBLAS_INCLUDE_DIR cublas_v2.h ${places} PATH_SUFFIXES include)
  find_path(CUSPARSE_INCLUDE_DIR cusparse.h ${places} PATH_SUFFIXES include)
  find_path(CUSOLVER_INCLUDE_DIR cusolverDn.h ${places} PATH_SUFFIXES include)
  find_path(NCCL_INCLUDE_DIR nccl.h ${places} PATH_SUFFIXES include)
  set(needed C10_CUDA_LIBRARY CUDART_LIBRARY CUDART_INCLUDE_DIR CUBLAS_INCLUDE_DIR CUSPARSE_INCLUDE_DIR CUSOLVER_INCLUDE_DIR
    NCCL_INCLUDE_DIR)
  foreach(each ${needed})
    if(NOT ${each})
      set(missing "${missing} ${each}")
    endif()
  endforeach()
  if(missing)
    set(missing "did not find${missing} (nvidia-cuda-dev libnccl-dev, or CUDA's folder in CUDA_HOME)" PARENT_SCOPE)
    return()
  endif()
  target_include_directories(dtool_libtorch SYSTEM INTERFACE ${CUDART_INCLUDE_DIR} ${CUBLAS_INCLUDE_DIR} ${CUSPARSE_INCLUDE_DIR}
    ${CUSOLVER_INCLUDE_DIR} ${NCCL_INCLUDE_DIR})
  target_compile_definitions(dtool_libtorch INTERFACE USE_C10D_NCCL)
  # What LibTorch's CUDA library needs in its turn (cuDNN, the driver) may be missing where one only builds. That library is kept
  # although no symbol of it may be needed: it registers the CUDA kernels when it is loaded.
  target_link_options(dtool_libtorch INTERFACE LINKER:--allow-shlib-undefined)
  target_link_libraries(dtool_libtorch INTERFACE -Wl,--no-as-needed ${TORCH_CUDA_LIBRARY} -Wl,--as-needed ${C10_CUDA_LIBRARY}
    ${CUDART_LIBRARY})
  set(DTOOL_TRAINER_NCCL ON PARENT_SCOPE)
endfunction()

# gloo's headers: beside LibTorch, or Debian's for Debian's LibTorch, which was built against them. pip's PyTorch has gloo without
# its headers: trainer/compat/gloo takes their place.
function(dtool_find_gloo root)
  if(root STREQUAL "/usr")
    find_path(GLOO_INCLUDE_DIR gloo/config.h)
    find_library(GLOO_LIBRARY gloo)
  else()
    find_path(GLOO_INCLUDE_DIR gloo/config.h HINTS ${root}/include NO_DEFAULT_PATH)  # the library is inside libtorch_cpu
    execute_process(COMMAND grep -q ProcessGroupGlooC1E ${TORCH_CPU_LIBRARY} RESULT_VARIABLE without_gloo)
    if(NOT GLOO_INCLUDE_DIR AND NOT without_gloo)
      set(GLOO_INCLUDE_DIR ${PROJECT_SOURCE_DIR}/trainer/compat/gloo)
    endif()
  endif()
  if(NOT GLOO_INCLUDE_DIR)
    return()
  endif()
  target_include_directories(dtool_libtorch SYSTEM INTERFACE ${GLOO_INCLUDE_DIR})
  target_compile_definitions(dtool_libtorch INTERFACE USE_C10D_GLOO)
  if(GLOO_LIBRARY)
    target_link_libraries(dtool_libtorch INTERFACE ${GLOO_LIBRARY})
  endif()
  set(DTOOL_TRAINER_GLOO ON PARENT_SCOPE)
endfunction()

# Makes the target dtool_libtorch. Sets DTOOL_TRAINER_NCCL and DTOOL_TRAINER_GLOO, ON where they were found, and
# DTOOL_LIBTORCH_PROBLEM, a sentence that says why dtool-trainer cannot be built, or empty; DTOOL_LIBTORCH_FMT, a definition for
# sources that include LibTorch's headers without linking dtool_libtorch, or empty.
function(dtool_find_libtorch)
  set(places)
  foreach(each ${CMAKE_PREFIX_PATH} ${Torch_DIR})
    list(APPEND places ${each}/../../include ${each}/../../../include)  # they name torch/share/cmake, torch/share/cmake/Torch
  endforeach()
  find_path(TORCH_INCLUDE_DIR torch/csrc/api/include/torch/version.h HINTS ${places} PATH_SUFFIXES include)
  if(NOT TORCH_INCLUDE_DIR)
    set(DTOOL_LIBTORCH_PROBLEM "no LibTorch (libtorch-dev, or CMAKE_PREFIX_PATH for another)" PARENT_SCOPE)
    return()
  endif()
  get_filename_component(TORCH_INCLUDE_DIR ${TORCH_INCLUDE_DIR} REALPATH)
  get_filename_component(root ${TORCH_INCLUDE_DIR} DIRECTORY)
  find_library(C10_LIBRARY c10 HINTS ${root}/lib)
  find_library(TORCH_CPU_LIBRARY torch_cpu HINTS ${root}/lib)
  find_library(TORCH_CUDA_LIBRARY torch_cuda HINTS ${root}/lib)
  if(NOT C10_LIBRARY OR NOT TORCH_CPU_LIBRARY)
    set(DTOOL_LIBTORCH_PROBLEM "${TORCH_INCLUDE_DIR} has LibTorch's headers, but its libraries were not found" PARENT_SCOPE)
    return()
  endif()
  # pip's PyTorch up to 2.5 has std::string as it was before C++11, and no library of today's Debian goes with that.
  file(STRINGS ${C10_LIBRARY} new_strings REGEX "torchCheckFailEPKcS2_jRKNSt7__cxx11" LIMIT_COUNT 1)
  if(NOT new_strings)
    set(DTOOL_LIBTORCH_PROBLEM "${C10_LIBRARY} was built with _GLIBCXX_USE_CXX11_ABI=0: use PyTorch 2.6 or newer" PARENT_SCOPE)
    return()
  endif()

  add_library(dtool_libtorch INTERFACE)
  # LibTorch is built so, and some of its classes have a member more without it: our asserts are off in files that include it.
  target_compile_definitions(dtool_libtorch INTERFACE NDEBUG)
  target_include_directories(dtool_libtorch SYSTEM INTERFACE ${TORCH_INCLUDE_DIR} ${TORCH_INCLUDE_DIR}/torch/csrc/api/include)
  if(NOT EXISTS ${TORCH_INCLUDE_DIR}/torch/csrc/distributed/autograd/context/context.h)
    target_include_directories(dtool_libtorch SYSTEM INTERFACE ${PROJECT_SOURCE_DIR}/trainer/compat)
  endif()
  target_compile_definitions(dtool_libtorch INTERFACE USE_DISTRIBUTED USE_RPC)
  # A PyTorch from pip brings fmt's headers, which hide those of the fmt that is linked, and not its library.
  if(NOT root STREQUAL "/usr" AND EXISTS ${TORCH_INCLUDE_DIR}/fmt/format.h)
    target_compile_definitions(dtool_libtorch INTERFACE FMT_HEADER_ONLY=1)
    set(DTOOL_LIBTORCH_FMT FMT_HEADER_ONLY=1 PARENT_SCOPE)
  endif()
  dtool_find_gloo(${root})
  if(TORCH_CUDA_LIBRARY AND NOT DTOOL_CUDA STREQUAL "OFF")
    dtool_find_libtorch_cuda(${root})
  elseif(DTOOL_CUDA STREQUAL "ON")
    set(missing "the LibTorch in ${root} has no CUDA")
  endif()
  if(missing AND DTOOL_CUDA STREQUAL "ON")
    message(FATAL_ERROR "DTOOL_CUDA is ON, but ${missing}")
  elseif(missing)
    message(STATUS "dtool-trainer will not use GPUs: LibTorch has CUDA, but cmake ${missing}")
  endif()
  target_link_libraries(dtool_libtorch INTERFACE ${TORCH_CPU_LIBRARY} ${C10_LIBRARY} Threads::Threads)
  if(NOT DTOOL_TRAINER_GLOO AND NOT DTOOL_TRAINER_NCCL)
    set(DTOOL_LIBTORCH_PROBLEM "${TORCH_CPU_LIBRARY} has neither gloo (Debian's: libgloo-dev) nor NCCL" PARENT_SCOPE)
  endif()
  set(TORCH_INCLUDE_DIR ${TORCH_INCLUDE_DIR} PARENT_SCOPE)
  set(DTOOL_TRAINER_GLOO ${DTOOL_TRAINER_GLOO} PARENT_SCOPE)
  set(DTOOL_TRAINER_NCCL ${DTOOL_TRAINER_NCCL} PARENT_SCOPE)
endfunction()
