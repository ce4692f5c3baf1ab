# The Python package of this build, importable from <build>/python: links to python/kernelwright and the rooms' modules, so that an edit is
# seen at once, beside the libraries and the fast path. Staged anew by every build: a deleted room's module goes away with it.

# The fast path: CPython's stable ABI without Python's headers (faces/torch/fast/python_abi.h says why). Python supplies its symbols.
file(GLOB fast_sources CONFIGURE_DEPENDS faces/torch/fast/*.cpp)
add_library(kw_fast MODULE ${fast_sources})
target_link_libraries(kw_fast PRIVATE kw_options)
set_target_properties(kw_fast PROPERTIES PREFIX "" OUTPUT_NAME _fast SUFFIX .abi3.so LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/fast")
if(NOT KW_SANITIZE)
  target_link_options(kw_fast PRIVATE -static-libstdc++ -static-libgcc)
endif()

# A library of ops like a user's own, for the tests of the Python faces.
file(GLOB test_room_sources CONFIGURE_DEPENDS tests/torch/*.cpp)
if(test_room_sources)
  add_library(kw_test_room MODULE ${test_room_sources})
  target_link_libraries(kw_test_room PRIVATE kw_options)
  set_target_properties(kw_test_room PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
endif()

configure_file(cmake/version.py.in "${CMAKE_BINARY_DIR}/generated/_version.py" @ONLY)
configure_file(python/program.py.in "${CMAKE_BINARY_DIR}/generated/_kernelwright_program.py" @ONLY)

# What scripts/wheels.py packs beside the install prefix (cmake/install.cmake); `cmake --install` alone leaves it out.
install(DIRECTORY python/kernelwright/ DESTINATION . COMPONENT python EXCLUDE_FROM_ALL
        FILES_MATCHING PATTERN "*.py" PATTERN "py.typed" PATTERN "__pycache__" EXCLUDE)
file(GLOB room_modules CONFIGURE_DEPENDS kw/ops/*/*_torch.py)
install(FILES ${room_modules} DESTINATION rooms COMPONENT python EXCLUDE_FROM_ALL)
install(FILES "${CMAKE_BINARY_DIR}/generated/_version.py" DESTINATION . COMPONENT python EXCLUDE_FROM_ALL)
install(TARGETS kw_fast DESTINATION . COMPONENT python EXCLUDE_FROM_ALL)

find_program(KW_PYTHON python3 HINTS "${CMAKE_SOURCE_DIR}/.venv/bin" DOC "writes the stubs of the staged package; without it there are none")
set(too_old 1)
if(KW_PYTHON)
  execute_process(COMMAND ${KW_PYTHON} -c "import sys; sys.exit(sys.version_info < (3, 11))" RESULT_VARIABLE too_old)
endif()
if(NOT too_old AND NOT KW_SANITIZE)
  set(stubs COMMAND ${CMAKE_COMMAND} -E env "PYTHONPATH=${CMAKE_BINARY_DIR}/python" PYTHONDONTWRITEBYTECODE=1 ${KW_PYTHON}
      -m kernelwright._stubs "${CMAKE_BINARY_DIR}/python/kernelwright")
endif()
add_custom_target(python_package ALL
  COMMAND ${CMAKE_COMMAND} -DSOURCE=${CMAKE_SOURCE_DIR} -DPACKAGE=${CMAKE_BINARY_DIR}/python/kernelwright
          "-DLIBRARIES=$<TARGET_FILE:kernelwright>$<SEMICOLON>$<$<TARGET_EXISTS:kwemu>:${CMAKE_BINARY_DIR}/libkwemu.so>"
          -DFAST=$<TARGET_FILE:kw_fast> -DPROGRAM=$<TARGET_FILE:kw> -DVERSION=${CMAKE_BINARY_DIR}/generated/_version.py
          -P ${CMAKE_SOURCE_DIR}/cmake/stage_package.cmake
  ${stubs}
  COMMENT "Staging the Python package" VERBATIM)
add_dependencies(python_package kernelwright kw_fast kw)
foreach(target kwemu kw_test_room)
  if(TARGET ${target})
    add_dependencies(python_package ${target})
  endif()
endforeach()
