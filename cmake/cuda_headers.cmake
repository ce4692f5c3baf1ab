# cuda.h and nvrtc.h, for types only: of the system's toolkit, else of the wheels in .venv (constraints.txt pins them).
file(GLOB wheel_headers ${CMAKE_SOURCE_DIR}/.venv/lib/python3*/site-packages/nvidia/cu13/include)
find_path(KW_CUDA_INCLUDE cuda.h HINTS ${wheel_headers} $ENV{CUDA_HOME}/include /usr/local/cuda/include)
find_path(KW_NVRTC_INCLUDE nvrtc.h HINTS ${wheel_headers} $ENV{CUDA_HOME}/include /usr/local/cuda/include)
if(NOT KW_CUDA_INCLUDE OR NOT KW_NVRTC_INCLUDE)
  message(FATAL_ERROR "cuda.h and nvrtc.h were not found: 'make setup' installs them into .venv, or set CUDA_HOME to a CUDA toolkit")
endif()
